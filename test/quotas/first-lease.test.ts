// A tenant that is ready is served without the control plane, since each gateway then holds a first lease and slots.
import { internalPaths, internalTokenHeader, type AppliedRoute } from '@tenantry/contract'
import t from 'tap'
import { internalToken, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'
import { send, leased, openRaw, slotsOf, startQuotaSetting, type QuotaGateway } from './support/gateways.ts'

const api = await startApi(t, { control: false })
const quota = 400
await api.sql("update plans set requests_per_month = $1, realtime_connections = 24 where id = 'Free'", [quota])
const limits = { requests_per_month: quota, connections: 24 }

/** Returns the route of the tenant as the gateway has applied it. */
async function appliedAt({ gateway }: QuotaGateway, tenantId: string): Promise<AppliedRoute> {
  return JSON.parse(
    (await send(gateway.internalPort, internalPaths.route(tenantId), { [internalTokenHeader]: internalToken })).body,
  ) as AppliedRoute
}

t.test('Requests and connections of an unused tenant are served while the control plane is away', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 3, { leaseWait: 1 })
  const { name, tenant_id: id } = await addTenant('Free', limits)
  for (const one of gateways) one.reachable = false
  for (const { gateway } of gateways) {
    t.equal((await send(gateway.port, `/t/${name}/status/200`)).status, 200)
    t.equal((await openRaw(t, gateway.port, name)).status, 101)
  }
  const { granted } = await leased(api, id)
  t.ok(granted <= quota, `${granted} of ${quota} are leased`)
})

t.test('So they are by a gateway that is killed before the first request and restarted meanwhile', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2, { leaseWait: 1 })
  const { name, tenant_id: id } = await addTenant('Free', limits)
  for (const one of gateways) {
    await one.kill()
    await one.start()
    t.equal((await appliedAt(one, id)).leased, true)
    t.equal((await send(one.gateway.port, `/t/${name}/status/200`)).status, 200)
    t.equal((await openRaw(t, one.gateway.port, name)).status, 101)
  }
})

t.test('A gateway whose calls for a lease get no response does not report that it holds one', async (t) => {
  const {
    routes,
    addTenant,
    gateways: [first, second],
  } = await startQuotaSetting(t, api, 2, { leaseWait: 1 })
  if (first === undefined || second === undefined) throw new Error('there are two')
  first.loseResponses = Infinity
  const known = await addTenant('Enterprise', { requests_per_month: null })
  const { name, tenant_id: id } = known
  await api.sql("update tenants set plan_id = 'Free' where id = $1", [id])
  routes.routes.put({ ...known, generation: 2, limits: { ...limits, rate: null } })
  await until(async () => (await appliedAt(second, id)).leased === true, 'the lease of the other gateway')
  await until(async () => (await appliedAt(first, id)).generation === 2, 'the route')
  t.equal((await appliedAt(first, id)).leased, false)
  await until(
    async () => (await send(first.gateway.port, `/t/${name}/status/200`)).status === 503,
    'the end of its wait',
  )
  const rejected = await send(first.gateway.port, `/t/${name}/status/200`)
  t.match(JSON.parse(rejected.body), { statusCode: '503', code: 'QUOTA_UNAVAILABLE' })
  t.equal(rejected.headers['retry-after'], '1')
  first.loseResponses = 0
  await until(async () => (await appliedAt(first, id)).leased === true, 'a lease')
})

t.test('A month that is known to be used up returns 429, also while the control plane is away', async (t) => {
  const {
    addTenant,
    gateways: [only],
  } = await startQuotaSetting(t, api, 1)
  if (only === undefined) throw new Error('there is one')
  await api.sql("update plans set requests_per_month = 3 where id = 'Pro'")
  const { name } = await addTenant('Pro', { requests_per_month: 3 })
  const get = async () => (await send(only.gateway.port, `/t/${name}/status/200`)).status
  for (let nth = 0; nth < 3; nth++) t.equal(await get(), 200)
  await until(async () => (await get()) === 429, "the end of the month's requests")
  only.reachable = false
  for (let nth = 0; nth < 5; nth++) t.equal(await get(), 429)
})

t.test('With four gateways and a plan of three requests, all are ready and three requests are served', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 4)
  await api.sql("update plans set requests_per_month = 3, realtime_connections = 3 where id = 'Pro'")
  const { name, tenant_id: id } = await addTenant('Pro', { requests_per_month: 3, connections: 3 })
  t.same((await leased(api, id)).granted, 3)
  t.ok(Object.values(await slotsOf(api, id)).reduce((sum, [slots]) => sum + slots, 0) <= 3)
  const statuses: number[] = []
  for (const { gateway } of gateways)
    for (let nth = 0; nth < 2; nth++) statuses.push((await send(gateway.port, `/t/${name}/status/200`)).status)
  t.same(statuses, [200, 200, 200, 429, 429, 429, 429, 429], 'what others hold and do not use is released')
  await until(async () => (await leased(api, id)).used === 3, 'the reports')
  t.same(await leased(api, id), { granted: 3, used: 3 })
})

t.test('A suspended tenant holds no slots, and gets some again before it is ready', async (t) => {
  const { addTenant, put, gateways } = await startQuotaSetting(t, api, 2)
  const route = await addTenant('Free', limits)
  const { tenant_id: id } = route
  t.equal(Object.keys(await slotsOf(api, id)).length, 2)
  await put({ ...route, generation: 2, phase: 'suspended' })
  await until(async () => Object.keys(await slotsOf(api, id)).length === 0, 'the release of its slots')
  await put({ ...route, generation: 3 })
  t.equal(Object.keys(await slotsOf(api, id)).length, 2)
  for (const one of gateways) t.equal((await appliedAt(one, id)).leased, true)
})

t.test('Boots that used nothing leave no rows', async (t) => {
  const {
    addTenant,
    gateways: [only],
  } = await startQuotaSetting(t, api, 1)
  if (only === undefined) throw new Error('there is one')
  const { tenant_id: id } = await addTenant('Free', limits)
  for (let nth = 0; nth < 3; nth++) {
    await only.kill()
    only.reachable = true
    await only.start()
    await until(async () => (await appliedAt(only, id)).leased === true, 'its lease')
  }
  await until(
    async () => (await api.sql('select 1 from request_leases where tenant_id = $1', [id])).length === 1,
    'one row',
  )
  t.ok((await leased(api, id)).granted <= quota)
})

t.test(
  'A boot that is killed before it knows that it took over a lease leaves the lease to the next boot',
  async (t) => {
    const {
      addTenant,
      gateways: [only],
    } = await startQuotaSetting(t, api, 1)
    if (only === undefined) throw new Error('there is one')
    const { name, tenant_id: id } = await addTenant('Free', limits)
    const { granted } = await leased(api, id)
    await only.kill()
    only.loseResponses = 1
    only.reachable = true
    await only.start()
    await until(() => only.loseResponses === 0, 'the call whose response is lost')
    await only.kill()
    await only.start()
    const served = async () => (await send(only.gateway.port, `/t/${name}/status/200`)).status === 200
    t.ok(await served())
    const { calls } = only
    only.reachable = true
    await until(() => only.calls > calls + 1, 'its report to the control plane')
    await until(async () => (await leased(api, id)).used === 1, 'the report of the request')
    const after = (await leased(api, id)).granted
    t.ok(after >= 1 && after <= granted, `${after} of ${granted}: what it serves from is deducted from the plan`)
  },
)
