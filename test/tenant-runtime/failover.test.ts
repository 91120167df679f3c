// Requests during the failover of a database: those that have not reached a primary, or of which nothing has happened, wait for
// the next one.
import t, { type Test } from 'tap'
import { Connections, defaultConnectionLimits, type ConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const service: RlsContext = { role: 'service', reason: 'test' }
/** A wait that no test reaches. */
const long = 120_000

t.test('Failover', async (t) => {
  const postgres = await startPostgres({ wal_level: 'replica' })
  t.teardown(() => postgres.stop())
  const { tenantId, url, ddl_url: ddlUrl } = await createHome(postgres)
  await query(ddlUrl, `set role ${tenantId}_owner; create table ${tenantId}.numbers (number int)`)
  await query(ddlUrl, `set role ${tenantId}_owner; grant select, insert on ${tenantId}.numbers to ${tenantId}`)
  const promote = () => query(postgres.url('postgres'), 'select pg_promote()')
  const open = (t: Test, limits: Partial<ConnectionLimits>) => {
    const connections = new Connections({ ...defaultConnectionLimits, ...limits })
    t.teardown(() => connections.close())
    return { connections, database: new ScopedDatabase(connections, { tenantId, url, ddlUrl }) }
  }
  const insert = (number: number) => sql('insert into numbers values ($1)', number)
  const numbersFrom = async (database: ScopedDatabase, from: number) => {
    const [result] = await database.read(service, sql('select number from numbers where number >= $1 order by 1', from))
    return result?.rows.map(({ number }) => number)
  }

  await t.test('Requests wait until a replica has been promoted, however many they are', async (t) => {
    const { connections, database } = open(t, { perTenant: 2, waitMilliseconds: 1_000, failoverMilliseconds: long })
    await database.run(service, insert(0))
    const demoted = postgres.demote()
    await until(() => connections.load.open === 0)
    let settled = 0
    const writes = [1, 2, 3, 4, 5, 6].map((number) => database.run(service, insert(number)))
    for (const write of writes) void write.finally(() => settled++).catch(() => undefined)
    await demoted
    // Several attempts reach the replica, and requests wait for longer than without a failover.
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    t.equal(settled, 0)
    t.equal(connections.load.waiting, 4)
    await promote()
    await Promise.all(writes)
    t.same(await numbersFrom(database, 0), [0, 1, 2, 3, 4, 5, 6], 'each write happened once')
  })

  await t.test('Statements that a failover ends run once more on the next primary', async (t) => {
    const { database } = open(t, { failoverMilliseconds: long })
    const begun = async () => {
      const found = await query(
        postgres.url('postgres'),
        `select 1 from pg_stat_activity where usename = $1 and wait_event = 'PgSleep'`,
        [tenantId],
      )
      return found.length === 2
    }
    const sleep = sql(
      'select pg_sleep(case when pg_postmaster_start_time() < $1 then 60 else 0 end)',
      new Date().toISOString(),
    )
    const read = database.read(service, sleep)
    const write = database.run(service, insert(10), sleep, insert(11))
    await until(begun)
    // Longer than the time after which a statement could itself be the reason for the end of its session.
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    await postgres.demote()
    await promote()
    await Promise.all([read, write])
    t.same(await numbersFrom(database, 10), [10, 11])
  })

  await t.test('A wait ends when its time is over', async (t) => {
    const { connections, database } = open(t, { perTenant: 1, waitMilliseconds: 50, failoverMilliseconds: 700 })
    await postgres.demote()
    const outcomes = await Promise.allSettled([1, 2, 3].map((number) => database.run(service, insert(20 + number))))
    t.ok(
      outcomes.every(
        (outcome) =>
          outcome.status === 'rejected' &&
          /^DATABASE_(?:UNAVAILABLE|BUSY)$/.test((outcome.reason as { code: string }).code),
      ),
    )
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
  })

  await t.test(
    'A runtime whose database has no failover rejects a replica at once, as a database that does not respond',
    async (t) => {
      const { database } = open(t, {})
      await t.rejects(database.read(service, sql('select 1')), { code: 'DATABASE_UNAVAILABLE' })
      await promote()
      t.same(await numbersFrom(database, 20), [], 'no rejected write happened')
    },
  )

  await t.test('A stop does not wait for a primary', async (t) => {
    const { connections, database } = open(t, { failoverMilliseconds: long })
    await postgres.demote()
    const read = database.read(service, sql('select 1'))
    await until(() => connections.load.open === 1)
    await connections.close()
    await t.rejects(read, { code: 'DATABASE_UNAVAILABLE' })
    await promote()
  })
})
