// kill -9 of the control plane around a write: before its commit nothing is left of it, after its commit the answer is there for
// the repeat, and the audit log is whole at any moment.
import pg from 'pg'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startPlatform, type Service } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const platform = await startPlatform()
t.teardown(() => platform.stop())
const url = platform.postgres.url('control')

interface Created {
  tenant_id: string
  status: string
  keys: { secret_key: string }
}

/** @returns undefined when the control plane has gone away before it answered */
async function create(
  name: string,
  wait = 0,
): Promise<{ status: number; isReplayed: boolean; body: Created } | undefined> {
  const response = await fetch(`${platform.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${platform.platformKey}`,
      'content-type': 'application/json',
      'idempotency-key': `key-of-${name}`,
      prefer: `wait=${wait}`,
    },
    body: JSON.stringify({ name, plan: 'Free', region: 'local' }),
  }).catch(() => undefined)
  const body = (await response?.json().catch(() => undefined)) as Created | undefined
  if (response === undefined || body === undefined) return undefined
  return { status: response.status, isReplayed: response.headers.get('idempotency-replayed') === 'true', body }
}

const rowsOf = async (table: string) =>
  Number((await query(url, `select count(*)::int as count from ${table}`))[0]?.['count'])
const counts = async () => ({
  tenants: await rowsOf('tenants'),
  operations: await rowsOf('operations'),
  responses: await rowsOf('idempotency_records'),
  entries: await rowsOf('audit_log'),
})
const verify = async () => (await platform.call('GET', '/v1/audit/verify')).body

async function kill({ process, exited }: Service): Promise<void> {
  process.kill('SIGKILL')
  await exited
}

/** Kills it while its write waits for the table: all that the write does before is done then. */
async function killAt(plane: Service, table: string, name: string): Promise<void> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin')
  await holder.query(`lock table ${table} in share mode`)
  const response = create(name)
  await until(
    async () =>
      (await query(url, `select 1 from pg_locks where not granted and relation = '${table}'::regclass`)).length > 0,
    `the write waits for ${table}`,
  )
  await kill(plane)
  if ((await response) !== undefined) throw new Error('it was answered all the same')
  await holder.query('rollback')
  await holder.end()
  await until(
    async () => (await query(url, "select 1 from pg_locks where locktype = 'advisory'")).length === 0,
    'the end of its sessions',
  )
}

t.test('killed before the commit: nothing is left, and the repeat is done as new', async (t) => {
  let plane = await platform.startControlPlane()
  // The second comes after the answer, and holds the end of the audit log.
  for (const table of ['operations', 'audit_log']) {
    const name = `before-${table.replace('_', '-')}`
    const before = await counts()
    await killAt(plane, table, name)
    t.same(await counts(), before, `nothing is left of the one that reached ${table}`)
    plane = await platform.startControlPlane()
    t.match(await create(name), { status: 201, isReplayed: false })
    const { tenants, operations, responses, entries } = before
    t.same(
      await counts(),
      { tenants: tenants + 1, operations: operations + 1, responses: responses + 1, entries: entries + 1 },
      'the repeat has made it once',
    )
    t.match(await verify(), { whole: true, entries: entries + 1 })
  }
  await kill(plane)
})

t.test('killed after the commit, before the answer: the repeat gets the answer, keys and all', async (t) => {
  const armed = await platform.startControlPlane({ failpoints: 'begin.before=hang' })
  const before = await counts()
  const lost = create('after', 30)
  await until(async () => (await rowsOf('tenants')) > before.tenants, 'the commit')
  await kill(armed)
  t.equal(await lost, undefined)

  const calm = await platform.startControlPlane()
  const repeated = await create('after', 30)
  t.match(repeated, { status: 201, isReplayed: true, body: { status: 'pending' } })
  t.same((await counts()).tenants, before.tenants + 1)
  const { tenant_id: id = '', keys } = repeated?.body ?? {}
  await until(async () => (await platform.call('GET', `/v1/tenants/${id}`)).body['status'] === 'ready', 'readiness')
  const opened = await platform.tenantCall('after', 'GET', '/storage/v1/bucket', { key: keys?.secret_key ?? '' })
  t.same(opened.status, 200, 'the keys that were kept are those of the tenant')
  t.match(await verify(), { whole: true })
  await kill(calm)
})

t.test('killed in the midst of many writes, again and again: each is done once, with one answer', async (t) => {
  const chance = chanceOf(seed)
  t.comment(`seed ${seed}`)
  const names = Array.from({ length: effort({ small: 16, full: 400 }) }, (_, nth) => `many-${nth}`)
  const before = await counts()
  const seen = new Map<string, Set<string>>(names.map((name) => [name, new Set()]))
  const send = async (name: string) => {
    const response = await create(name)
    if (response === undefined) return false
    if (response.status !== 201) throw new Error(`${name}: ${response.status} ${JSON.stringify(response.body)}`)
    seen.get(name)?.add(`${response.body.tenant_id} ${response.body.keys.secret_key}`)
    return true
  }
  let kills = 0
  for (let left = names; left.length > 0;) {
    const plane = await platform.startControlPlane()
    t.match(await verify(), { whole: true }, 'the audit log is whole')
    const made = (await rowsOf('tenants')) + chance.below(10)
    const sent = Promise.all(left.map(send))
    await until(async () => (await rowsOf('tenants')) >= Math.min(made, before.tenants + names.length), 'some commits')
    await kill(plane)
    kills++
    const response = await sent
    left = left.filter((_, nth) => !response[nth])
  }
  t.comment(`killed ${kills} times`)
  const calm = await platform.startControlPlane()
  for (const name of names) await send(name)
  t.same(
    [...seen].filter(([, responses]) => responses.size !== 1),
    [],
    'whatever was answered under one key is one answer',
  )
  const { tenants, operations, responses, entries } = before
  const count = names.length
  t.same(await counts(), {
    tenants: tenants + count,
    operations: operations + count,
    responses: responses + count,
    entries: entries + count,
  })
  t.match(await verify(), { whole: true, entries: entries + count })
  await kill(calm)
})
