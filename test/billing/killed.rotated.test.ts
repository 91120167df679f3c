// SIGKILL while a month's invoices are created, within a batch and between two batches. The numbers have no gap, each tenant
// has one invoice, and each adjustment is on one invoice.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import pg from 'pg'
import t from 'tap'
import { until } from '#test/support/until.ts'
import { startLedger } from '#test/usage/support/ledger.ts'

const ledger = await startLedger(t, '2026-02-01T01:00:00Z')
const { sql, url } = ledger
const tenants = 350
await sql(
  `insert into tenants (id, name, plan_id, region_id, isolation, status, created_at, updated_at)
   select 't_' || substr(md5(n::text), 1, 20), 'n-' || n, case when n % 10 = 0 then 'Pro' else 'Free' end,
     'local', 'schema-per-tenant', 'ready', '2026-01-01', '2026-01-01'
   from generate_series(1, $1::int) n`,
  [tenants],
)
await sql(
  `insert into adjustments (id, tenant_id, description, amount_micro, currency, created_at)
    select gen_random_uuid(), id, 'goodwill', -1000000, 'EUR', now() from tenants`,
)
await ledger.close('2026-02-01T01:00:00Z')

const program = new URL('./support/closing-child.ts', import.meta.url).pathname
function begin(): ChildProcess {
  const child = spawn(process.execPath, [program, url, '2026-02-01T02:00:00Z'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}
async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
/** Number of other database sessions of control planes. Those of a killed process must end. */
const sessions = async () =>
  Number(
    (
      await sql(
        "select count(*)::int as count from pg_stat_activity where application_name = 'tenantry-control-plane' and pid <> pg_backend_pid()",
      )
    )[0]?.['count'],
  )
const present = async () =>
  (
    await sql(`select (select count(*)::int from invoices) as invoices, (select last from invoice_numbers) as last,
      (select count(*)::int from invoices where number is not null) as numbered,
      (select count(*)::int from operator_events where type = 'invoice.final') as events,
      (select count(*)::int from adjustments where invoice_id is not null) as billed`)
  )[0]
const complete = (count: number) => ({ invoices: count, last: count, numbered: count, events: count, billed: count })

/** Kills a process while the last statement of its batch waits for a lock, after numbers and invoices are written. */
async function killWithinBatch(): Promise<void> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin')
  await holder.query('lock table operator_events in share mode')
  const child = begin()
  await until(
    async () =>
      (await sql("select 1 from pg_locks where not granted and relation = 'operator_events'::regclass")).length > 0,
    'the batch waits for the lock',
  )
  await kill(child)
  await holder.query('rollback')
  await holder.end()
}

t.test('A batch that is killed before its commit leaves no rows, and the next batch gets its numbers', async (t) => {
  // The count may include the test's own client.
  const idle = await sessions()
  await killWithinBatch()
  await until(async () => (await sessions()) <= idle, 'the killed sessions have ended')
  t.same(await present(), complete(0))

  const child = begin()
  await until(async () => Number((await present())?.['invoices']) >= 100, 'a batch is committed')
  await kill(child)
  await until(async () => (await sessions()) <= idle, 'the killed sessions have ended')
  const after = Number((await present())?.['invoices'])
  t.ok(
    after === 100 || after === 200 || after === 300 || after === tenants,
    `the ${after} invoices are complete batches`,
  )
  t.same(await present(), complete(after))

  if (after < tenants) await killWithinBatch()
  await until(async () => (await sessions()) <= idle, 'the killed sessions have ended')
  t.same(await present(), complete(after))
})

t.test('The next leader creates each missing invoice once', async (t) => {
  for (let again = 0; again < 2; again++) {
    const child = begin()
    t.same(await once(child, 'exit'), [0, null])
    t.same(await present(), complete(tenants))
  }
  t.same(
    await sql(
      `select count(distinct tenant_id)::int as tenants, count(distinct number)::int as numbers,
        min(number) as first, max(number) as last from invoices`,
    ),
    [{ tenants, numbers: tenants, first: 1, last: tenants }],
  )
  t.same(
    await sql("select month::text from invoiced_months where month = '2026-01-01T00:00:00Z'").then(
      (rows) => rows.length,
    ),
    1,
  )
})
