// What operators see of the gateway: the metrics of its bounds, and the access log.
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import t from 'tap'
import type { GatewayOptions } from '#gateway/gateway.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting, token, type Setting } from './support/gateway.ts'
import { openMany } from './support/flood.ts'

async function readMetrics({ gateway }: Setting, given = token): Promise<Map<string, number>> {
  const { status, headers, body } = await send(gateway.internalPort, {
    path: '/metrics',
    headers: { 'x-tenantry-internal': given },
  })
  if (status !== 200) throw new Error(String(status))
  t.match(headers['content-type'], /^text\/plain; version=/)
  const lines = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

t.test('The metrics show use, limit and rejections of each bound', async (t) => {
  const setting = await startSetting(t, { limits: { connections: 30, requestsPerTenant: 2 } })
  await setting.add('acme')
  const { port } = setting.gateway
  await openMany(t, port, 5, '127.0.0.61')
  const held = [0, 1].map(() =>
    httpRequest({ agent: false, host: '127.0.0.1', port, path: '/t/acme/hang' })
      .end()
      .on('error', () => undefined),
  )
  t.teardown(() => held.forEach((request) => request.destroy()))
  await until(() => setting.upstream.open === 2)
  for (let n = 0; n < 3; n++) t.match((await send(port, { path: '/t/acme/head' })).body, /TENANT_BUSY/)
  const metrics = await readMetrics(setting)
  const of = (bound: string) =>
    ['used', 'limit', 'rejections_total'].map((name) => metrics.get(`tenantry_gateway_bound_${name}{bound="${bound}"}`))
  t.same(of('connections').slice(1), [30, 0])
  t.same(of('connections_per_address'), [5, 1_250, 0])
  t.same(of('requests'), [2, 3_600, 0])
  t.same(of('requests_per_tenant'), [2, 2, 3])
  t.same(of('runtime_connections'), [2, 4_000, 0])
  t.same(of('body_bytes'), [0, 64 * 1024 * 1024, 0])
  t.same(of('rejections_per_address').slice(1), [1_000_000, 0])
  t.ok((metrics.get('process_resident_memory_bytes') ?? 0) > 0)
  t.same(
    await readMetrics(setting).then((again) =>
      again.get('tenantry_gateway_bound_rejections_total{bound="requests_per_tenant"}'),
    ),
    3,
    'reading changes nothing',
  )
  for (const given of ['', 'wrong']) await t.rejects(readMetrics(setting, given), { message: '403' })
})

interface Line {
  path?: string
}

async function startLogged(t: Parameters<typeof startSetting>[0], accessLog: GatewayOptions['accessLog']) {
  const lines: Line[] = []
  const log: GatewayOptions['log'] = {
    info: (fields: Line, message) => void (message === 'Request.' && lines.push(fields)),
    warn: () => undefined,
    debug: () => undefined,
  }
  const setting = await startSetting(t, { log, elapsed: () => 0, ...(accessLog === undefined ? {} : { accessLog }) })
  return { setting, lines }
}

t.test('The access log has a line for each request, without headers, keys and query strings', async (t) => {
  const { setting, lines } = await startLogged(t, { share: 1, random: () => 0.999 })
  const { tenant_id: id } = await setting.add('acme')
  const { port } = setting.gateway
  const secret = 'tn_secret_that_must_not_appear'
  const headers = { authorization: `Bearer ${secret}`, apikey: secret, cookie: secret }
  await send(port, { path: `/t/acme/rest/v1/echo?token=${secret}`, method: 'POST', headers, body: secret })
  await send(port, { path: `/t/acme/status/404?apikey=${secret}`, headers })
  await send(port, { path: '/t/nobody/x' })
  const client = new WebSocket(`ws://127.0.0.1:${port}/t/acme/ws?apikey=${secret}`)
  await once(client, 'open')
  client.close()
  await until(() => lines.length === 4, 'all lines')
  const sorted = lines.toSorted((a, b) => String(a.path).localeCompare(String(b.path)))
  t.match(sorted, [
    { tenant: id, method: 'POST', path: '/rest/v1/echo', status: 200, milliseconds: 0, client: '127.0.0.1' },
    { tenant: id, method: 'GET', path: '/status/404', status: 404 },
    { tenant: id, method: 'GET', path: '/ws', status: 101 },
    { tenant: null, method: 'GET', path: '/x', status: 404 },
  ])
  t.same(
    new Set(lines.map((line) => Object.keys(line).join(' '))),
    new Set(['tenant method path status bytes milliseconds client']),
  )
  t.notMatch(JSON.stringify(lines), /tn_secret/)
})

t.test('The access log contains the configured share, and nothing by default', async (t) => {
  let n = 0
  const { setting, lines } = await startLogged(t, { share: 0.25, random: () => (n++ % 4) / 4 })
  await setting.add('acme')
  for (let sent = 0; sent < 40; sent++) await send(setting.gateway.port, { path: '/t/acme/bytes/3' })
  await until(() => lines.length === 10, 'a quarter of the requests')
  const silent = await startLogged(t, undefined)
  await silent.setting.add('acme')
  await send(silent.setting.gateway.port, { path: '/t/acme/bytes/3' })
  t.same(silent.lines, [])
})
