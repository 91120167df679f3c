// A whole installation of `npm start` is destroyed, with its host directory, and rebuilt from its backup target and its
// master key by the documented command: rows, files, usage, invoices, keys and backups are compared.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmod, copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { controlSql, startInstallation, type Installation } from '#test/support/installation.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { month, prices } from './support/billed-month.ts'

interface Owner {
  id: string
  name: string
  key: string
  url: string
}

const tenants = effort({ small: 3, full: 20 })
const hash = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')

async function control(
  { controlUrl }: Installation,
  key: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${controlUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      prefer: 'wait=60',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function request(
  { gatewayUrl }: Installation,
  { name, key }: Owner,
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  type = 'application/json',
): Promise<Response> {
  const response = await fetch(`${gatewayUrl}/t/${name}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response
}

async function createTenant(installation: Installation, name: string): Promise<Owner> {
  const { body } = await control(installation, installation.platformKey, 'POST', '/v1/tenants', {
    name,
    plan: 'Free',
    region: 'local',
  })
  const { secret_key: key = '' } = body['keys'] as Record<string, string>
  const owner = { id: String(body['tenant_id']), name, key, url: String(body['database_url']) }
  const picture = Buffer.alloc(100_000, name)
  await request(installation, owner, 'POST', '/storage/v1/object/system/picture', picture, 'image/png')
  await request(installation, owner, 'POST', '/storage/v1/object/system/empty', '', 'text/plain')
  await query(
    owner.url,
    `create table ledger (id bigint generated always as identity primary key, text text);
     insert into ledger (text) select md5('${name}' || n::text) from generate_series(1, 200) n`,
  )
  return owner
}

async function backUp(installation: Installation, { id }: Owner): Promise<void> {
  const { status, body } = await control(installation, installation.platformKey, 'POST', `/v1/tenants/${id}/backups`)
  if (status !== 202) throw new Error(JSON.stringify(body))
  const path = `/v1/backups/${String(body['id'])}`
  await until(
    async () => (await control(installation, installation.platformKey, 'GET', path)).body['state'] === 'complete',
  )
}

/** Returns what the operator and the tenants' clients see of all data. */
async function seen(
  installation: Installation,
  key: string,
  owners: readonly Owner[],
): Promise<Record<string, unknown>> {
  const everything: Record<string, unknown> = {}
  const read = async (path: string) => (await control(installation, key, 'GET', path)).body
  for (const owner of owners) {
    const { id, name } = owner
    const isServed = () =>
      request(installation, owner, 'GET', '/health').then(
        ({ ok }) => ok,
        () => false,
      )
    await until(isServed, `${name} is served`)
    const tenant = await read(`/v1/tenants/${id}`)
    everything[`${name}: tenant`] = ['name', 'plan', 'region', 'isolation', 'status', 'created_at'].map(
      (field) => tenant[field],
    )
    for (const file of ['picture', 'empty']) {
      const response = await request(installation, owner, 'GET', `/storage/v1/object/system/${file}`)
      everything[`${name}: ${file}`] = [
        response.headers.get('content-type'),
        hash(Buffer.from(await response.arrayBuffer())),
      ]
    }
    everything[`${name}: rows`] = await query(
      String(tenant['database_url']).replace('@', `:${new URL(owner.url).password}@`),
      "select count(*)::int as count, md5(string_agg(id || text, ',' order by id)) as content from ledger",
    )
    everything[`${name}: usage of closed months`] = await controlSql(
      installation,
      `select month, totals, hash from usage_months where tenant_id = '${id}' and closed_at is not null order by month`,
    )
    everything[`${name}: invoices`] = (await read(`/v1/tenants/${id}/invoices`))['invoices']
    everything[`${name}: backups`] = (
      (await read(`/v1/tenants/${id}/backups`))['backups'] as Record<string, unknown>[]
    ).map(({ id: backup, state, manifest_sha256, bytes }) => [backup, state, manifest_sha256, bytes])
  }
  const keys = (await read('/v1/keys'))['keys'] as Record<string, unknown>[]
  everything['keys'] = keys.filter(({ name }) => name !== 'recovery key')
  return everything
}

/** Returns the number of each tenant's requests that the gateway has reported so far. */
async function requests(installation: Installation): Promise<Map<string, number>> {
  const rows = await controlSql(
    installation,
    `select tenant_id as id, sum(value)::int as value from usage_counters where meter = 'requests' group by 1`,
  )
  return new Map(rows.map(({ id, value }) => [String(id), Number(value)]))
}

/** Starts the recovery, and kills it once the control database is restored. */
async function killedRecovery(data: string, recover: string, environment: Record<string, string>): Promise<void> {
  const entry = new URL('../../local/src/start.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [entry, '--json', '--data', data, '--recover', recover], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  await until(() => {
    if (child.exitCode !== null) throw new Error(output.slice(-4000))
    return /tenants: \d+\n/.test(output)
  })
  child.kill('SIGKILL')
  await once(child, 'exit')
}

t.test('an installation is rebuilt from its target and its master key', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tenantry-recover-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  // The control plane runs as another user.
  await chmod(root, 0o755)
  const target = join(root, 'target')
  await writeFile(join(root, 'prices.json'), JSON.stringify(prices), { mode: 0o644 })
  const environment = { TENANTRY_BACKUPS: target, TENANTRY_PRICES_FILE: join(root, 'prices.json') }
  const first = await startInstallation({ environment })
  t.teardown(() => first.stop())
  const owners: Owner[] = []
  for (let number = 1; number <= tenants; number++) owners.push(await createTenant(first, `tenant-${number}`))
  const suspended = await createTenant(first, 'suspended')
  for (const owner of [...owners, suspended]) await backUp(first, owner)
  const suspension = { suspended: true, suspend_reason: 'The invoice is due.' }
  await control(first, first.platformKey, 'PATCH', `/v1/tenants/${suspended.id}`, suspension)
  const reported = async () => (await requests(first)).size === tenants + 1
  await until(reported)
  await controlSql(first, "update plan_periods set since = date_trunc('month', now()) - interval '2 months'")
  process.kill(await first.pid('control-plane'), 'SIGKILL')
  for (const { id } of owners) {
    const close = () => control(first, first.platformKey, 'POST', `/v1/tenants/${id}/invoices/close`, { month })
    await until(() =>
      close().then(
        ({ body }) => body['state'] === 'final',
        () => false,
      ),
    )
  }
  const reportedBefore = await requests(first)

  // A new leader takes a dump at once when the target has none.
  for (const name of await readdir(target))
    if (name.startsWith('control-database-')) await rm(join(target, name), { recursive: true })
  process.kill(await first.pid('control-plane'), 'SIGKILL')
  const dumped = async () => {
    const names = await readdir(target, { recursive: true })
    return names.some((name) => /control-database-.*[0-9a-f]{12}\/manifest$/.test(name))
  }
  await until(dumped)
  const [last] = owners
  if (last === undefined) throw new Error('There is no tenant.')
  // This backup is younger than the dump.
  await query(last.url, "insert into ledger (text) values ('after the dump')")
  await until(() =>
    backUp(first, last).then(
      () => true,
      () => false,
    ),
  )
  const before = await seen(first, first.platformKey, owners)
  await copyFile(join(first.data, 'secrets/master-key'), join(root, 'master-key'))
  await first.killAll()
  await rm(first.data, { recursive: true })

  const recover = join(root, 'master-key')
  const begun = performance.now()
  await killedRecovery(first.data, recover, environment)
  const second = await startInstallation({ dataDirectory: first.data, environment, recover })
  t.teardown(() => second.stop())
  t.comment(
    `${tenants} tenants were rebuilt in ${((performance.now() - begun) / 1000).toFixed(1)} s, with a start that was killed`,
  )
  const { stderr } = second.output()
  for (const { id } of owners) t.match(stderr, new RegExp(`${id} \\(tenant-\\d+\\): restored from the backup of `))
  t.match(stderr, /backup [0-9a-f-]{36}: adopted/)
  t.match(stderr, /was restored from the dump [0-9a-f-]{36} before/, 'the killed start is continued')
  t.not(second.platformKey, first.platformKey, 'a new platform key was created')
  const after = await seen(second, first.platformKey, owners)
  t.same(after, before, 'everything is as it was, and the lost platform key is valid')
  const restored = await requests(second)
  for (const { id, name } of owners) {
    t.ok((reportedBefore.get(id) ?? 0) > 0, `${name} has sent requests before the dump`)
    t.ok((restored.get(id) ?? 0) >= (reportedBefore.get(id) ?? 0), `the requests of ${name} are counted`)
  }
  const path = `/v1/tenants/${suspended.id}`
  t.match((await control(second, first.platformKey, 'GET', path)).body, {
    status: 'suspended',
    suspend_reason: suspension.suspend_reason,
  })
  await control(second, first.platformKey, 'PATCH', path, { suspended: false })
  const resumed = await seen(second, first.platformKey, [suspended])
  t.match(resumed['suspended: rows'], [{ count: 200 }])
  await second.stop()
  if (tenants < 20) return

  const third = await startInstallation({ dataDirectory: first.data, environment, recover })
  t.teardown(() => third.stop())
  t.match(
    third.output().stderr,
    /No tenant has lost its data\./,
    'the command can be repeated, and changes nothing then',
  )
  t.same(await seen(third, first.platformKey, owners), before)
})
