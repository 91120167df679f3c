// A tenant's own rate: set, shown, removed, retained when the plan changes, and applied by gateways without a restart.
import type { Route } from '@tenantry/contract'
import t from 'tap'
import type { TenantBody } from '#control-plane/tenants/tenant-body.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { recordRateLimits } from '#control-plane/plans/store.ts'
import { isError, newName, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { send, startQuotaSetting } from './support/gateways.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
await recordRateLimits(database, {
  Free: { per_second: 1, burst: 3 },
  Pro: { per_second: 1, burst: 5 },
  Enterprise: null,
})
await api.sql('update plans set requests_per_month = null, realtime_connections = null')

const prefer = { prefer: 'wait=30' }
const patch = async (id: string, body: object) => {
  const response = await api.call('PATCH', `/v1/tenants/${id}`, { body, headers: prefer })
  if (response.status !== 200) throw new Error(response.text)
  return (response.body as TenantBody).rate_limit
}
const published = async (id: string): Promise<Route> => {
  const [entry] = await api.published.some(new Set([id]))
  if (entry === undefined) throw new Error(`${id} is not published`)
  return entry.route
}
const rate = async (id: string) => (await published(id)).limits?.rate
const audited = async (id: string) =>
  (await api.sql('select detail from audit_log where target = $1 order by seq desc limit 1', [id]))[0]?.['detail']

t.test("A tenant has its plan's rate until it gets its own, and again when that is removed", async (t) => {
  const { tenant_id: id, rate_limit: first } = await api.create()
  t.same(first, { per_second: 1, burst: 3, source: 'plan' })
  t.same(await patch(id, { rate_limit: { per_second: 20, burst: 1 } }), {
    per_second: 20,
    burst: 1,
    source: 'tenant',
  })
  t.same((await api.tenant(id)).rate_limit, { per_second: 20, burst: 1, source: 'tenant' })
  t.same(await rate(id), { per_second: 20, burst: 1 })
  t.same(await audited(id), { rate_limit: { per_second: 20, burst: 1 } })

  t.same(await patch(id, { rate_limit: 'unlimited' }), { per_second: null, burst: null, source: 'tenant' })
  t.equal(await rate(id), null)
  t.same(await audited(id), { rate_limit: 'unlimited' })

  t.same(await patch(id, { rate_limit: null }), { per_second: 1, burst: 3, source: 'plan' })
  t.same(await rate(id), { per_second: 1, burst: 3 })
  t.same(await audited(id), { rate_limit: null })
  t.same(await patch(id, { plan: 'Enterprise' }), { per_second: null, burst: null, source: 'plan' })
})

t.test("A change of the plan or of another field keeps a tenant's own rate", async (t) => {
  const { tenant_id: id } = await api.create(undefined, { plan: 'Enterprise' })
  await patch(id, { rate_limit: { per_second: 9_999_999, burst: 9_999_999 } })
  const own = { per_second: 9_999_999, burst: 9_999_999, source: 'tenant' }
  t.same(await patch(id, { plan: 'Pro' }), own)
  t.same(await patch(id, { name: newName() }), own)
  t.same(await rate(id), { per_second: 9_999_999, burst: 9_999_999 })
  await patch(id, { rate_limit: 'unlimited' })
  t.same(
    await patch(id, { plan: 'Free' }),
    { per_second: null, burst: null, source: 'tenant' },
    "the plan's rate does not replace an unlimited one",
  )
  t.same(
    await patch(id, { plan: 'Pro', rate_limit: null }),
    { per_second: 1, burst: 5, source: 'plan' },
    'both at once',
  )
})

t.test('A tenant may be created with its own rate, which the audit log records', async (t) => {
  for (const [own, shown] of [
    [
      { per_second: 7, burst: 8 },
      { per_second: 7, burst: 8 },
    ],
    ['unlimited', { per_second: null, burst: null }],
  ] as const) {
    const name = newName()
    const response = await api.call('POST', '/v1/tenants', {
      body: { name, plan: 'Free', region: 'local', rate_limit: own },
      headers: prefer,
    })
    const { tenant_id: id, rate_limit: held } = response.body as CreatedTenant
    t.same(held, { ...shown, source: 'tenant' })
    t.same(await rate(id), own === 'unlimited' ? null : own)
    t.same(await audited(id), { name, plan: 'Free', region: 'local', isolation: 'schema-per-tenant', rate_limit: own })
  }
})

t.test('A rejected change changes nothing, and only an admin key may make one', async (t) => {
  const { tenant_id: id, generation } = await api.create()
  const body = { rate_limit: 'unlimited' }
  for (const key of [api.keys.read, api.keys.billing])
    isError(
      t,
      await api.call('PATCH', `/v1/tenants/${id}`, { key, body }),
      403,
      'WRONG_SCOPE',
      'scope',
      'another scope',
    )
  isError(
    t,
    await api.call('PATCH', `/v1/tenants/${id}`, { body: { rate_limit: { per_second: 0, burst: 1 } } }),
    400,
    'INVALID_FIELD',
    '"rate_limit.per_second"',
    'not a rate',
  )
  t.match(await api.tenant(id), { generation, rate_limit: { per_second: 1, burst: 3, source: 'plan' } })
})

t.test('Gateways apply the rate from each change on, without a restart', async (t) => {
  // The clock does not move, so that the budget of the rate is not refilled.
  const {
    gateways: [one],
    put,
    upstream,
  } = await startQuotaSetting(t, api, 1, { elapsed: () => 0 })
  const { tenant_id: id, name } = await api.create()
  const admit = async () => {
    await put({ ...(await published(id)), runtimes: [upstream.url] })
    for (let count = 0; count < 50; count++) {
      const { status, body } = await send(one?.gateway.port ?? 0, `/t/${name}/status/200`)
      if (status === 200) continue
      t.match({ status, ...(JSON.parse(body) as object) }, { status: 429, code: 'RATE_LIMITED', limit: count })
      return count
    }
    return 'all'
  }
  t.same(await admit(), 3)
  await patch(id, { rate_limit: { per_second: 1, burst: 12 } })
  t.same(await admit(), 12, 'faster than the plan')
  await patch(id, { rate_limit: { per_second: 1, burst: 2 } })
  t.same(await admit(), 2, 'slower than the plan')
  await patch(id, { rate_limit: 'unlimited' })
  t.same(await admit(), 'all')
  await patch(id, { rate_limit: null, plan: 'Pro' })
  t.same(await admit(), 5)
})
