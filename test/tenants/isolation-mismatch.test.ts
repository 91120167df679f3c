// A change of plan moves no data. The response reports that the isolation is not the plan's, and the invoice does not charge for it.
import t from 'tap'
import type { UpcomingBody } from '#control-plane/billing/invoice-body.ts'
import { billingConfig } from '#test/billing/support/prices.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { cloud: true, prices: billingConfig })
const dayMilliseconds = 86_400_000
// A change in the last hour of a month has no fee in that month.
if (new Date(Date.now() + dayMilliseconds).getUTCDate() === 1) api.clock.ahead = dayMilliseconds

const feesOf = async (id: string) => {
  const { lines } = (await api.call('GET', `/v1/tenants/${id}/invoices/upcoming`)).body as UpcomingBody
  return lines
    .filter(({ charge }) => charge === 'fee')
    .map(({ plan, isolation, amount }) => ({ plan, isolation, isCharged: amount !== '0.000000' }))
}

t.test('a shared tenant on a plan with dedicated services pays only fees for its isolation', async (t) => {
  const { tenant_id: id } = await api.create('upgraded', {
    plan: 'Enterprise',
    isolation: 'schema-per-tenant',
    region: 'local',
  })
  t.match(
    (await api.call('GET', `/v1/tenants/${id}`)).body,
    { isolation: 'schema-per-tenant', isolation_mismatch: null },
    'the region provides no stronger isolation',
  )
  t.same(await feesOf(id), [{ plan: 'Enterprise', isolation: undefined, isCharged: true }])

  // The tenant is now like one in the shared Postgres of a region with containers.
  await api.sql("update regions set strongest_isolation = 'database-per-tenant' where id = 'local'")
  await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Pro' }, headers: { prefer: 'wait=20' } })
  const fees = await feesOf(id)
  t.same(
    fees.at(-1),
    { plan: 'Pro', isolation: 'schema-per-tenant', isCharged: true },
    'the fee of the price list for the isolation',
  )
  await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Enterprise' }, headers: { prefer: 'wait=20' } })
  t.same(
    (await feesOf(id)).filter(({ plan, isolation }) => plan === 'Enterprise' && isolation !== undefined),
    [{ plan: 'Enterprise', isolation: 'schema-per-tenant', isCharged: false }],
  )
})

t.test('responses report a mismatch with a code and a reason', async (t) => {
  const { tenant_id: id } = await api.create('moved-down', { plan: 'Pro', region: 'cloud' })
  t.match((await api.call('GET', `/v1/tenants/${id}`)).body, {
    isolation: 'database-per-tenant',
    isolation_mismatch: null,
  })
  await api.sql("update tenants set isolation = 'schema-per-tenant', plan_id = 'Free' where id = $1", [id])
  const changed = await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Pro' } })
  t.match(changed, { status: 200, body: { plan: 'Pro', isolation: 'schema-per-tenant' } })
  const mismatch = {
    code: 'WEAKER_THAN_PLAN',
    plan_isolation: 'database-per-tenant',
    message: /Pro has database-per-tenant in region "cloud", but the tenant is schema-per-tenant/,
  }
  t.match(changed.body, { isolation_mismatch: mismatch })
  t.match(
    (await api.call('GET', `/v1/tenants/${id}`)).body,
    { isolation_mismatch: mismatch },
    'the tenant shows the mismatch too',
  )
  isError(
    t,
    await api.call('POST', `/v1/tenants/${id}/restart`),
    422,
    'NOT_DEDICATED',
    'schema-per-tenant',
    'an action that needs dedicated services',
  )

  await api.sql("update tenants set isolation = 'database-per-tenant', plan_id = 'Free' where id = $1", [id])
  t.match((await api.call('GET', `/v1/tenants/${id}`)).body, {
    isolation_mismatch: { code: 'STRONGER_THAN_PLAN', plan_isolation: 'schema-per-tenant' },
  })
})
