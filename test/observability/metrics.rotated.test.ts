// The metrics of a real installation: each one that the alert rules and the dashboard name exists, read as Prometheus reads
// them.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { metricsIn, readAlerts, readQueries } from './support/read-alerts.ts'

const installation = await startInstallation()
t.teardown(() => removeInstallation(installation))
const { data, controlUrl, gatewayUrl, platformKey } = installation
const token = (await readFile(join(data, 'secrets', 'internal-token'), 'utf8')).trim().split('\n')[0] ?? ''
const [region] = JSON.parse(await readFile(join(data, 'regions.json'), 'utf8')) as {
  runtime_urls: string[]
  gateway_internal_urls: string[]
}[]
const parts: Record<string, { url: string; token: string }> = {
  'control-plane': { url: `${controlUrl}/metrics`, token: platformKey },
  gateway: { url: `${region?.gateway_internal_urls[0]}/metrics`, token },
  runtime: { url: `${region?.runtime_urls[0]}/internal/v1/metrics`, token },
}

const call = ({ url }: { url: string }, headers: Record<string, string>) =>
  fetch(url, { headers, signal: AbortSignal.timeout(10_000) })
/** Reads the metrics of a part with the one header that Prometheus sends. */
const read = async (part: { url: string; token: string }) => {
  const response = await call(part, { authorization: `Bearer ${part.token}` })
  if (response.status !== 200) throw new Error(`${part.url} responded with ${response.status}`)
  return response.text()
}
const namesOf = (text: string) => new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name))

t.test('Every metric of the alert rules and of the dashboard exists', async (t) => {
  const texts = await Promise.all(Object.values(parts).map(read))
  const exist = new Set(texts.flatMap((text) => [...namesOf(text)]))
  t.ok(exist.size > 70, `${exist.size} metrics exist`)
  const used = [...(await readAlerts()), ...(await readQueries())].flatMap(({ expr }) => metricsIn(expr))
  const missing = [...new Set(used)].filter((name) => !exist.has(name))
  t.ok(used.length > 80)
  t.same(missing, [], 'all of them are exposed')
  t.notOk(exist.has('tenantry_nothing'))
  t.match(
    texts[0],
    /^tenantry_backup_jobs_total\{kind="verify",outcome="failed"\} 0$/m,
    'a first failure is an increase',
  )
  for (const text of texts) t.match(text, /^process_resident_memory_bytes \d/m, 'each part reports its memory')
})

t.test(
  'Every alert rule has its metric in the documentation, and every metric of the service is in a rule or a panel',
  async (t) => {
    const page = await readFile(new URL('../../docs/operate/monitoring.md', import.meta.url), 'utf8')
    const rules = (await readAlerts())
      .flatMap(({ expr }) => metricsIn(expr))
      .filter((name) => name.startsWith('tenantry_'))
    t.same(
      [...new Set(rules)].filter((name) => !page.includes(name)),
      [],
    )
    const shown = new Set([...rules, ...(await readQueries()).flatMap(({ expr }) => metricsIn(expr))])
    const texts = await Promise.all(Object.values(parts).map(read))
    const own = texts.flatMap((text) => [...namesOf(text)]).filter((name) => name.startsWith('tenantry_'))
    // It is the same as process_resident_memory_bytes, and remains for those who already read it.
    t.same(
      own.filter((name) => !shown.has(name)),
      ['tenantry_runtime_resident_bytes'],
    )
  },
)

t.test('The metrics count the requests of tenants', async (t) => {
  const created = await fetch(`${controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${platformKey}`, 'content-type': 'application/json', prefer: 'wait=30' },
    body: JSON.stringify({ name: 'acme', plan: 'Free', region: 'local' }),
  })
  const { keys } = (await created.json()) as { keys: { secret_key: string } }
  const count = async (labels: string) => {
    const line = (await read(parts['gateway'] ?? { url: '', token }))
      .split('\n')
      .find((text) => text.startsWith(labels))
    return Number(line?.split(' ').at(-1))
  }
  const [served, rejected, seconds] = [
    'tenantry_gateway_requests_total{outcome="served",status="2xx"}',
    'tenantry_gateway_requests_total{outcome="rejected",status="4xx"}',
    'tenantry_gateway_request_seconds_count',
  ] as const
  const before = await Promise.all([served, rejected, seconds].map(count))
  const get = (key: string) =>
    fetch(`${gatewayUrl}/t/acme/storage/v1/bucket`, { headers: { authorization: `Bearer ${key}` } })
  t.equal((await get(keys.secret_key)).status, 200)
  t.equal((await get('wrong')).status, 401)
  const after = await Promise.all([served, rejected, seconds].map(count))
  t.same(
    after.map((value, nth) => value - (before[nth] ?? 0)),
    [1, 1, 1],
  )
})

t.test('Metrics need a token, and the token in this header opens nothing else', async (t) => {
  for (const [name, part] of Object.entries(parts))
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: `Basic ${part.token}` }])
      t.match((await call(part, headers)).status, /^(401|403)$/, name)
  const { gateway, runtime } = parts
  const bearer = { authorization: `Bearer ${token}` }
  t.equal((await call({ url: String(gateway?.url).replace('/metrics', '/internal/v1/activity') }, bearer)).status, 403)
  t.equal((await call({ url: String(runtime?.url).replace('/metrics', '/watch') }, bearer)).status, 403)
  t.equal((await fetch(`${gatewayUrl}/t/acme/internal/v1/metrics`, { headers: bearer })).status, 404)
})
