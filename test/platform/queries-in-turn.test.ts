// Prisma's transactions send one query at a time on a connection of node-postgres. A process of a test run that queues queries
// on a connection ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { migrate, readMigrations } from '#control-plane/platform/migrations.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

const check = fileURLToPath(new URL('../support/fail-on-queued-queries.cjs', import.meta.url))

/** Records the greatest number of queries that waited on a connection when it got another one, of which node-postgres warns. */
function watchQueues(t: Test): { max: number } {
  const seen = { max: 0 }
  const send = pg.Client.prototype.query
  t.teardown(() => (pg.Client.prototype.query = send))
  pg.Client.prototype.query = function (this: pg.Client & { _queryQueue: unknown[] }, ...args: unknown[]) {
    seen.max = Math.max(seen.max, this._queryQueue.length)
    return Reflect.apply(send, this, args) as unknown
  } as typeof send
  return seen
}

t.test('queries of a transaction', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  await migrate(postgres.url('control'), await readMigrations())
  const queues = watchQueues(t)
  const database = openDatabase(postgres.url('control'))
  t.teardown(() => database.$disconnect())

  t.test('concurrent queries are sent one at a time, in order', async (t) => {
    const rows = await database.$transaction((transaction) =>
      Promise.all(Array.from({ length: 8 }, (_, n) => transaction.$queryRaw<{ n: number }[]>`select ${n}::int as n`)),
    )
    t.same(
      rows.flat().map(({ n }) => n),
      [0, 1, 2, 3, 4, 5, 6, 7],
    )
    t.equal(queues.max, 0)
  })

  t.test('the queries of an include are sent one at a time', async (t) => {
    await query(
      postgres.url('control'),
      "insert into regions (id, engine, domain) values ('local', 'process', 'localhost')",
    )
    const include = { tenants: true, sharedDatabases: true, subnets: true, rollouts: true }
    const [region] = await database.$transaction((transaction) => transaction.region.findMany({ include }))
    t.match(region, { id: 'local', tenants: [], sharedDatabases: [], subnets: [], rollouts: [] })
    t.equal(queues.max, 0)
  })

  t.test('a failed query rolls the transaction back, and no later query waits', async (t) => {
    await t.rejects(
      database.$transaction((transaction) =>
        Promise.all([
          transaction.$executeRaw`select pg_advisory_xact_lock(7)`,
          transaction.$executeRaw`select 1 / 0`,
          transaction.$queryRaw`select 1`,
          transaction.$queryRaw`select 2`,
        ]),
      ),
      /division by zero/,
    )
    const [lock] = await database.$queryRaw<
      { free: boolean }[]
    >`select pg_try_advisory_lock(7) and pg_advisory_unlock(7) as free`
    t.equal(lock?.free, true, 'the transaction is over')
    t.equal(queues.max, 0)
  })
})

t.test('a process of a test run that queues queries ends with exit code 1', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const run = async (queries: string) => {
    const program = `const pg = (await import('pg')).default
      const client = new pg.Client(process.argv[1]); await client.connect(); ${queries}; await client.end()`
    const options = ['--require', check, '--input-type=module', '--eval', program, postgres.url('postgres')]
    const child = spawn(process.execPath, options, { stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, stderr }
  }
  t.match(await run("await client.query('select 1'); await client.query('select 2'); await client.query('select 3')"), {
    code: 0,
  })
  const queued = await run("await Promise.all(['select 1', 'select 2', 'select 3'].map((text) => client.query(text)))")
  t.match(queued, { code: 1, stderr: /already executing a query/ })
  t.match(process.env['NODE_OPTIONS'], /fail-on-queued-queries/, 'the check is loaded into this process too')
})
