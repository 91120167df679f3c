// Old records of runs are deleted in batches. What they contributed to the usage remains counted, and recent ones stay.
import t from 'tap'
import { trimInvocations, invocationBounds } from '#tenant-runtime/functions/invocations/trim-invocations.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { deployFunction } from './support/deployed.ts'
import { openTenant } from './support/open-tenant.ts'
import { command } from './support/wasm.ts'

/** Writes a record for each age in hours, as if the function had run then for 10 ms. */
const insertRecords = (tenant: TestTenant, hours: readonly number[]) =>
  tenant.rows(
    `insert into function_invocations (id, function_id, trigger, status, state, error_message, duration_ms, cpu_ms, timestamp)
     select 'r' || age, f.id, 'http', 'success', 'ended', null, 10, 1, now() - make_interval(hours => age)
     from functions f, unnest($1::int[]) as age`,
    [[...hours]],
  )
const agesOf = async (tenant: TestTenant) =>
  (await tenant.rows("select substr(id, 2)::int as age from function_invocations where id like 'r%' order by 1")).map(
    ({ age }) => age,
  )

t.test('Old records of runs', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const newTenant = async () => {
    const tenant = await runtime.addTenant()
    await deployFunction(tenant, { name: 'one', wasm: command() })
    await tenant.rows(
      `alter table storage_usage disable trigger counted;
       update storage_usage set books_began = now() - interval '100 days';
       alter table storage_usage enable trigger counted`,
    )
    return tenant
  }

  t.test('They are deleted when the usage is read, and their usage remains', async (t) => {
    const tenant = await newTenant()
    await insertRecords(tenant, [1, 23, 100, 719, 721, 900, 2_000])
    const readRuns = async () => {
      const response = await tenant.request('GET', `/internal/v1/tenants/${tenant.id}/books?hours=999`)
      const { hours } = response.json() as { hours: { function_invocations: string; function_milliseconds: string }[] }
      return hours.map((hour) => [hour.function_invocations, hour.function_milliseconds])
    }
    const before = await readRuns()
    await until(async () => (await agesOf(tenant)).length === 4, 'records of more than 30 days are deleted')
    t.same(await agesOf(tenant), [1, 23, 100, 719])
    t.same(await readRuns(), before)
    t.equal(before.filter(([invocations]) => invocations === '1').length, 6, 'all but the one before the hours')
  })

  t.test('Beyond the number, the oldest are deleted in batches, but none of the last day', async (t) => {
    const tenant = await newTenant()
    const { tenant: inside, close } = openTenant(tenant)
    t.teardown(close)
    await insertRecords(tenant, [1, 2, 3, 30, 31, 32, 33, 34])
    t.equal(await trimInvocations(inside, { ...invocationBounds, records: 5, batch: 2 }), 3)
    t.same(await agesOf(tenant), [1, 2, 3, 30, 31])
    t.equal(await trimInvocations(inside, { ...invocationBounds, records: 0 }), 2)
    t.same(await agesOf(tenant), [1, 2, 3])
    await query(
      tenant.home.url,
      `select set_config('app.tenant_id', '${tenant.id}', false), set_config('app.role', 'service_role', false);
       delete from "${tenant.id}".function_invocations`,
    )
    t.same(await agesOf(tenant), [1, 2, 3], "the runtime's login cannot delete them either")
  })
})
