// The control plane is killed around a write: before the commit nothing remains, after it a repeated request gets the
// response, and the audit log is always complete.
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

/** @returns undefined when the control plane ends before its response */
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

/** Kills the control plane while its write waits for the table, when all earlier steps of the write are done. */
async function killAt(plane: Service, table: string, name: string): Promise<void> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin')
  await holder.query(`lock table ${table} in share mode`)
  const response = create(name)
  await until(
    async () =>
      (await query(url, `select 1 from pg_locks where not granted and relation = '${table}'::regclass`)).length > 0,
    `the wait for ${table}`,
  )
  await kill(plane)
  if ((await response) !== undefined) throw new Error('the control plane responded nevertheless')
  await holder.query('rollback')
  await holder.end()
  await until(
    async () => (await query(url, "select 1 from pg_locks where locktype = 'advisory'")).length === 0,
    'the end of its sessions',
  )
}

t.test('A write that is killed before its commit leaves nothing, and is done when repeated', async (t) => {
  let plane = await platform.startControlPlane()
  // The second table is written after the response is stored, and holds the end of the audit log.
  for (const table of ['operations', 'audit_log']) {
    const name = `before-${table.replace('_', '-')}`
    const before = await counts()
    await killAt(plane, table, name)
    t.same(await counts(), before, `nothing remains of the write that reached ${table}`)
    plane = await platform.startControlPlane()
    t.match(await create(name), { status: 201, isReplayed: false })
    const { tenants, operations, responses, entries } = before
    t.same(
      await counts(),
      { tenants: tenants + 1, operations: operations + 1, responses: responses + 1, entries: entries + 1 },
      'the repeated request is done once',
    )
    t.match(await verify(), { whole: true, entries: entries + 1 })
  }
  await kill(plane)
})

t.test('A write that is killed after its commit returns its response, with keys, when repeated', async (t) => {
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
  t.same(opened.status, 200, 'the stored keys are those of the tenant')
  t.match(await verify(), { whole: true })
  await kill(calm)
})

t.test('Of many writes that are killed repeatedly, each is done once with one response', async (t) => {
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
  for (let remaining = names; remaining.length > 0;) {
    const plane = await platform.startControlPlane()
    t.match(await verify(), { whole: true }, 'the audit log is complete')
    const made = (await rowsOf('tenants')) + chance.below(10)
    let responses = 0
    const sent = Promise.all(
      remaining.map(async (name) => {
        const isDone = await send(name)
        responses++
        return isDone
      }),
    )
    // When everything is committed, only responses are missing. A kill before each of them would repeat for ever.
    const all = before.tenants + names.length
    await until(async () => {
      const tenants = await rowsOf('tenants')
      return tenants >= Math.min(made, all) && (tenants < all || responses > 0)
    }, 'some commits')
    await kill(plane)
    kills++
    const response = await sent
    remaining = remaining.filter((_, nth) => !response[nth])
  }
  t.comment(`killed ${kills} times`)
  const calm = await platform.startControlPlane()
  for (const name of names) await send(name)
  t.same(
    [...seen].filter(([, responses]) => responses.size !== 1),
    [],
    'each key has one response',
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
