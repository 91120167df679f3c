// The watchdog on a real Postgres: a hostile tenant's sessions end, its login closes, and a neighbour continues.
import pg from 'pg'
import t, { type Test } from 'tap'
import { readSessionLimits } from '#control-plane/sessions/session-limits.ts'
import { sampleSql } from '#control-plane/sessions/sessions-sql.ts'
import { startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const limits = '*.memory_bytes=60000000,*.locks=200,*.idle_seconds=2,*.temporary_bytes=30000000,*.snapshot_seconds=2'

async function connect(t: Test, { database_url: url }: CreatedTenant): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  return client
}

/** Runs statements of a neighbour until the work has ended. None may fail. */
async function alongside(t: Test, neighbour: CreatedTenant, work: () => Promise<void>): Promise<void> {
  const client = await connect(t, neighbour)
  let isOver = false
  let count = 0
  const running = (async () => {
    while (!isOver) {
      await client.query('select count(*) from storage_buckets')
      count++
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  await work().finally(() => (isOver = true))
  await t.resolves(running, 'no statement of the neighbour failed')
  t.ok(count > 0, `${count} statements of the neighbour`)
}

/** Waits until the server has ended a session. */
const endOf = (client: pg.Client) => new Promise((resolve) => client.once('end', () => resolve(undefined)))

const conditionOf = async ({ tenant_id: id }: CreatedTenant) =>
  (await api.tenant(id)).conditions.find(({ type }) => type === 'Sql')

const code = (error: unknown) => (error instanceof pg.DatabaseError ? error.code : String(error))

const api = await startApi(t, { jobs: true, control: false, sessionLimits: readSessionLimits(limits) })
let controller = api.startController()
const tenants = async () => ({ attacker: await api.create(), neighbour: await api.create() })

t.test('The samples of an older Postgres contain everything but the write-ahead log', async (t) => {
  const client = await connect(t, await api.create())
  await client.query('create table logged (id int); insert into logged select generate_series(1, 1000)')
  const [own] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows
  /** Returns the sample of the client's own session. One of the control plane may end meanwhile. */
  const sampled = async (version: number) => {
    const rows = await query(api.postgres.url('postgres'), sampleSql(version))
    return rows
      .filter(({ pid }) => pid === own?.pid)
      .map(({ wal_bytes: wal, memory_bytes: memory }) => ({ wal: Number(wal), hasMemory: Number(memory) > 0 }))
  }
  t.same(await sampled(170_000), [{ wal: 0, hasMemory: true }])
  await until(async () => (await sampled(180_000)).some(({ wal }) => wal > 0))
})

t.test('A sort that takes memory without end is cancelled', { timeout: 120_000 }, async (t) => {
  const { attacker, neighbour } = await tenants()
  const client = await connect(t, attacker)
  await alongside(t, neighbour, async () => {
    await client.query("set work_mem = '64GB'")
    const sorted = client.query('select g from generate_series(1, 200000000) g order by md5(g::text) limit 1')
    t.match(await sorted.then(() => 'sorted', code), /^(57014|57P01)$/)
  })
  await until(async () => (await conditionOf(attacker)) !== undefined)
  t.match(await conditionOf(attacker), {
    status: 'True',
    reason: 'TooMuchMemory',
    message:
      /^The memory of sessions was \d+ MB; the limit of the plan is 60 MB\. Statements that were cancelled: 1\.$/,
  })
  t.equal(await conditionOf(neighbour), undefined)
  const events = await api.sql("select type, tenant_id, data from operator_events where type = 'tenant.sql_limited'")
  t.match(events, [
    {
      tenant_id: attacker.tenant_id,
      data: { action: 'cancelled', reason: 'TooMuchMemory', closed_until: null, plan: 'Free' },
    },
  ])
  t.ok(
    api.log.some((line) => line.includes('SQL sessions of a tenant were ended') && line.includes(attacker.tenant_id)),
  )
  t.match(
    (await api.call('GET', '/metrics')).text,
    'tenantry_sql_sessions_ended_total{region="local",reason="TooMuchMemory",action="cancelled"} 1',
  )
})

t.test('An open transaction that has written ends, and so does an old snapshot', { timeout: 120_000 }, async (t) => {
  const { attacker, neighbour } = await tenants()
  const [writer, reader] = [await connect(t, attacker), await connect(t, attacker)]
  await alongside(t, neighbour, async () => {
    const written = endOf(writer)
    await writer.query('create table noted (id int); begin; insert into noted values (1)')
    await written
    await until(async () => (await conditionOf(attacker))?.reason === 'TransactionIdle')
    const read = endOf(reader)
    await reader.query('begin isolation level repeatable read; select count(*) from storage_buckets')
    await read
    await until(async () => (await conditionOf(attacker))?.reason === 'SnapshotTooOld')
  })
})

t.test('The watchdog works while the table of locks is full', { timeout: 120_000 }, async (t) => {
  const { attacker, neighbour } = await tenants()
  const admin = new pg.Client({ connectionString: api.postgres.url('postgres') })
  await admin.connect()
  t.teardown(() => admin.end())
  const holder = await connect(t, attacker)
  await holder.query('create table noted (id int); begin; insert into noted values (1)')
  const ended = endOf(holder)
  // The superuser's locks are not ended, so that the table stays full.
  await t.rejects(admin.query('select pg_advisory_lock(g) from generate_series(1, 10000000) g'), { code: '53200' })
  await t.rejects(connect(t, neighbour), { code: '53200' }, 'there is no room for a new session')
  await ended
  await admin.query('select pg_advisory_unlock_all()')
  await until(async () => (await conditionOf(attacker))?.reason === 'TransactionIdle')
})

t.test(
  'A tenant that takes locks again and again cannot log in for a while, also if the control plane restarts',
  { timeout: 120_000 },
  async (t) => {
    const { attacker, neighbour } = await tenants()
    await alongside(t, neighbour, async () => {
      for (;;) {
        const failed = await connect(t, attacker).then(
          async (client) => {
            const tables = Array.from({ length: 150 }, (_, nth) => `create table taken_${nth} (id int primary key)`)
            await client.query(['begin', ...tables].join(';')).catch(() => undefined)
            await until(() =>
              client.query('select 1').then(
                () => false,
                () => true,
              ),
            )
            return undefined
          },
          (error: unknown) => error,
        )
        if (failed !== undefined) {
          t.match(failed, { code: '28000', message: /not permitted to log in/ })
          break
        }
      }
    })
    await until(async () => (await conditionOf(attacker))?.status === 'False')
    t.match(await conditionOf(attacker), {
      reason: 'TooManyLocks',
      message: /The SQL login is closed until \d{4}-/,
    })
    const events = await api.sql("select data from operator_events where data ->> 'action' = 'closed'")
    t.match(events, [{ data: { closed_until: /^\d{4}-.*Z$/ } }])
    await t.rejects(connect(t, attacker), { code: '28000' })

    // Another control plane leads: it knows the offences, and closes a login that was opened in between.
    await controller.stop()
    await query(api.postgres.url('postgres'), `alter role ${attacker.tenant_id}_admin login`)
    controller = api.startController()
    await until(() =>
      connect(t, attacker).then(
        () => false,
        (error: unknown) => code(error) === '28000',
      ),
    )
    api.clock.ahead = 3_600_000
    await until(() =>
      connect(t, attacker).then(
        () => true,
        () => false,
      ),
    )
    await until(async () => (await conditionOf(attacker))?.status !== 'False')
    t.ok(api.log.some((line) => line.includes('The SQL login of a tenant was opened')))
  },
)
