// The API rejects a change to a plan that the stored bytes exceed, with the reasons. Any other change takes effect at once, also
// in the gateways' limits and leases.
import t from 'tap'
import { createPlanHistory } from '#control-plane/plans/store-history.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'
import { send, leased, startQuotaSetting } from '#test/quotas/support/gateways.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const history = createPlanHistory(database)

const stored = { file_bytes: 0, document_bytes: 0 }
api.region.tenantUsage = async (_url, id) => {
  if (!api.region.agrees) throw new Error('the region does not respond')
  return { tenant_id: id, file_count: 1, function_invocations: 0, ...stored }
}

const change = (id: string, plan: string) =>
  api.call('PATCH', `/v1/tenants/${id}`, { body: { plan }, headers: { prefer: 'wait=30' } })
const plansOf = async (id: string) =>
  (await history.periods(id, new Date(0), new Date('2100-01-01'))).map(({ plan }) => plan)
const megabyte = 10 ** 6

t.test('500 MB of documents and 1 GB of files fit the Free plan, and one byte more does not', async (t) => {
  const { tenant_id: id } = await api.create(undefined, { plan: 'Pro' })
  for (const [resource, field, limit] of [
    ['documents', 'document_bytes', 500 * megabyte],
    ['files', 'file_bytes', 1_000 * megabyte],
  ] as const) {
    Object.assign(stored, { file_bytes: 0, document_bytes: 0, [field]: limit + 1 })
    const response = await change(id, 'Free')
    isError(t, response, 409, 'PLAN_TOO_SMALL', `${resource} use ${limit + 1} of ${limit} bytes`, resource)
    t.same((response.body as { misfits: unknown }).misfits, [{ resource, stored: limit + 1, limit }])
  }
  Object.assign(stored, { file_bytes: 10 ** 12, document_bytes: 10 ** 12 })
  t.same(((await change(id, 'Free')).body as { misfits: unknown[] }).misfits.length, 2, 'both resources are named')
  t.same((await api.tenant(id)).plan, 'Pro')
  t.same(await plansOf(id), ['Pro'], 'a rejected change records nothing')
  Object.assign(stored, { file_bytes: 1_000 * megabyte, document_bytes: 500 * megabyte })
  t.same((await change(id, 'Free')).status, 200)
  t.same(await plansOf(id), ['Pro', 'Free'])
})

t.test('when the stored bytes are unknown, a smaller plan is rejected and a larger one is not', async (t) => {
  Object.assign(stored, { file_bytes: 0, document_bytes: 0 })
  const { tenant_id: id } = await api.create(undefined, { plan: 'Pro' })
  api.region.agrees = false
  const response = await change(id, 'Free')
  isError(t, response, 503, 'STORED_UNKNOWN', '"Free"', 'a smaller plan')
  t.same(response.headers['retry-after'], '1')
  const larger = await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Enterprise' } })
  t.same(larger.status, 200)
  api.region.agrees = true
  await until(async () => (await api.tenant(id)).observed_generation === 2, 'the effect of the change')
})

t.test('the control plane publishes the new limits to gateways', async (t) => {
  const { tenant_id: id } = await api.create()
  const limits = async () => (await api.published.some(new Set([id])))[0]?.route.limits
  t.match(await limits(), { requests_per_month: 10_000, connections: 100 })
  await change(id, 'Pro')
  t.match(await limits(), { requests_per_month: 1_000_000, connections: 10_000 })
  await change(id, 'Enterprise')
  t.match(await limits(), { requests_per_month: null, connections: null })
})

t.test('a larger plan serves rejected requests at once, and a smaller one takes leases back', async (t) => {
  await api.sql(
    "update plans set requests_per_month = case id when 'Free' then 20 when 'Pro' then 1000 end where id <> 'Enterprise'",
  )
  const {
    addTenant,
    put,
    gateways: [one],
  } = await startQuotaSetting(t, api, 1)
  const port = one?.gateway.port ?? 0
  const route = await addTenant('Free')
  const status = async () => (await send(port, `/t/${route.name}/status/200`)).status
  const change = async (generation: number, plan: string, requests: number) => {
    await api.sql('update tenants set plan_id = $2, updated_at = now() where id = $1', [route.tenant_id, plan])
    await put({ ...route, generation, limits: { connections: null, rate: null, requests_per_month: requests } })
  }
  for (let nth = 0; nth < 20; nth++) t.same(await status(), 200)
  t.same(await status(), 429)
  await change(2, 'Pro', 1_000)
  for (let nth = 0; nth < 5; nth++) t.same(await status(), 200)
  t.ok((await leased(api, route.tenant_id)).granted > 25, 'the gateway holds more than it has used')
  await change(3, 'Free', 20)
  t.same(await status(), 429, 'requests under the larger plan count')
  await until(async () => (await leased(api, route.tenant_id)).granted === 25, "the release of the gateway's leases")
})
