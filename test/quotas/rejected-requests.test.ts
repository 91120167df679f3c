// Requests that never reach a tenant's data cost nothing, neither of its quota nor of its bill. Those for which a runtime
// worked do.
import { connect } from 'node:net'
import t from 'tap'
import { startApi } from '#test/support/control-plane/api.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import {
  send,
  totalOf,
  leased,
  startQuotaSetting,
  type ReceivedResponse,
  type QuotaGateway,
} from './support/gateways.ts'

const api = await startApi(t, { control: false })
const quota = effort({ small: 500, full: 10_000 })
await api.sql("update plans set requests_per_month = $1 where id = 'Free'", [quota])
const random = chanceOf(seed).next

/** Requests for which a runtime worked, whatever their status. They count as the tenant's requests. */
const billable = [
  '/status/200',
  '/status/401',
  '/status/404',
  '/status/500',
  '/bytes/10',
  '/close',
  '/claimed/4097',
  '/unmeasured',
]
/** Requests that the gateway or the runtime rejects before anything of the tenant is touched. */
const rejected = [
  '/rejected/401',
  '/rejected/403',
  '/rejected/404',
  '/rejected/503',
  '/claimed/4096',
  '/internal/v1/live',
]

const pick = (paths: readonly string[]) => paths[Math.floor(random() * paths.length)] ?? ''
const portsOf = (gateways: readonly QuotaGateway[]) => gateways.map(({ gateway }) => gateway.port)

/** Sends all requests over 16 connections and all gateways. */
async function sendAll(ports: readonly number[], name: string, paths: readonly string[]): Promise<ReceivedResponse[]> {
  const waiting = [...paths]
  const responses: ReceivedResponse[] = []
  await Promise.all(
    Array.from({ length: 16 }, async (_, nth) => {
      for (let path = waiting.pop(); path !== undefined; path = waiting.pop())
        responses.push(await send(ports[nth % ports.length] ?? 0, `/t/${name}${path}`))
    }),
  )
  return responses
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((one) => ({ one, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

t.test(`A plan serves its whole number, however many requests are rejected among them (seed ${seed})`, async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2)
  const { name, tenant_id: id } = await addTenant('Free')
  // For a plan of 10,000 these are 11,506 requests.
  const rejections = Math.ceil(quota * 0.1506)
  const paths = shuffled([
    ...Array.from({ length: quota }, () => pick(billable)),
    ...Array.from({ length: rejections }, () => pick(rejected)),
  ])
  const responses = await sendAll(portsOf(gateways), name, paths)
  t.same(responses.filter(({ status }) => status === 429).length, 0)
  t.notOk(
    responses.some(({ headers }) => Object.keys(headers).some((header) => header.startsWith('x-tenantry'))),
    "the runtime's mark stays inside",
  )
  await until(
    async () => (await totalOf(api, id, 'requests')) + (await totalOf(api, id, 'rejected_requests')) === paths.length,
    'all counts',
  )
  t.equal(await totalOf(api, id, 'requests'), quota)
  t.equal(await totalOf(api, id, 'rejected_requests'), rejections)
  t.equal(await totalOf(api, id, 'latency'), quota, 'latencies are those of billable requests')
  await until(async () => (await leased(api, id)).used === quota, 'the last reports')
  t.same(await leased(api, id), { granted: quota, used: quota })
  for (const port of portsOf(gateways)) t.equal((await send(port, `/t/${name}/status/200`)).status, 429)
  const { body } = await api.call('GET', `/v1/tenants/${id}/usage?resource=api_requests`)
  const { api_requests: shown } = (body as { resources: unknown }).resources as {
    api_requests: {
      count: number
      rejected: number
      rejected_by_status: Record<string, number>
      by_status: Record<string, number>
    }
  }
  t.same([shown.count, shown.rejected], [quota, rejections])
  t.equal(
    Object.values(shown.rejected_by_status).reduce((sum, count) => sum + count, 0),
    rejections,
  )
  t.ok(
    (shown.rejected_by_status['4xx'] ?? 0) > 0 && (shown.by_status['4xx'] ?? 0) > 0,
    'by status they are shown apart',
  )
})

t.test('Unauthenticated requests take nothing of the quota, and cost nothing', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2)
  const { name, tenant_id: id } = await addTenant('Free')
  const responses = await sendAll(
    portsOf(gateways),
    name,
    Array.from({ length: quota * 2 }, () => '/rejected/401'),
  )
  t.same(new Set(responses.map(({ status }) => status)), new Set([401]))
  await until(async () => (await totalOf(api, id, 'rejected_requests')) === quota * 2, 'all counts')
  t.same(
    [await totalOf(api, id, 'requests'), await totalOf(api, id, 'egress_bytes'), (await leased(api, id)).used],
    [0, 0, 0],
  )
  const served = await sendAll(
    portsOf(gateways),
    name,
    Array.from({ length: quota }, () => '/status/200'),
  )
  t.same(new Set(served.map(({ status }) => status)), new Set([200]), 'the whole month remains')
})

t.test('The rate also limits rejected requests', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 1)
  const { name, tenant_id: id } = await addTenant('Free', { rate: { per_second: 1, burst: 3 } })
  const responses = await sendAll(
    portsOf(gateways),
    name,
    Array.from({ length: 20 }, () => '/rejected/401'),
  )
  t.ok(responses.filter(({ status }) => status === 429).length > 0)
  await until(
    async () => (await totalOf(api, id, 'rejected_requests')) + (await totalOf(api, id, 'refused_requests')) === 20,
    'all counts',
  )
  t.equal(await totalOf(api, id, 'requests'), 0)
})

t.test('A client cannot determine whether it is billed', async (t) => {
  const {
    addTenant,
    gateways: [only],
  } = await startQuotaSetting(t, api, 1)
  const { name, tenant_id: id } = await addTenant('Free')
  for (let nth = 0; nth < 3; nth++)
    await send(only?.gateway.port ?? 0, `/t/${name}/status/401`, { 'x-tenantry-rejected': '1' })
  // A client that leaves when its request has reached the runtime may have caused work.
  const socket = connect(only?.gateway.port ?? 0, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`GET /t/${name}/hang HTTP/1.1\r\nHost: x\r\n\r\n`)
  await until(async () => (await leased(api, id)).used === 3, 'the first three requests')
  socket.destroy()
  await until(async () => (await totalOf(api, id, 'requests')) === 4, 'the request whose client left')
  t.equal(await totalOf(api, id, 'rejected_requests'), 0)
})

t.test('Requests that reach no runtime are rejected, whatever the reason', async (t) => {
  const {
    addTenant,
    put,
    gateways: [only],
  } = await startQuotaSetting(t, api, 1)
  const route = await addTenant('Free')
  const { name, tenant_id: id } = route
  const port = only?.gateway.port ?? 0
  await put({ ...route, generation: 2, phase: 'suspended', reason: 'unpaid' })
  t.equal((await send(port, `/t/${name}/status/200`)).status, 403)
  await put({ ...route, generation: 3, phase: 'pending' })
  t.equal((await send(port, `/t/${name}/status/200`)).status, 503)
  await put({ ...route, generation: 4, runtimes: ['http://127.0.0.1:1'] })
  t.equal((await send(port, `/t/${name}/status/200`)).status, 503)
  await put({ ...route, generation: 5 })
  t.equal((await send(port, `/t/${name}/internal/v1/live`)).status, 404)
  await until(async () => (await totalOf(api, id, 'rejected_requests')) === 4, 'all counts')
  t.same(
    [await totalOf(api, id, 'requests'), await totalOf(api, id, 'egress_bytes'), (await leased(api, id)).used],
    [0, 0, 0],
  )
})

t.test('A gateway that is killed after rejections uses no lease for them', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 1)
  const [killed] = gateways
  if (killed === undefined) throw new Error('there is one')
  const { name, tenant_id: id } = await addTenant('Free')
  await sendAll(portsOf(gateways), name, [
    ...Array.from({ length: 50 }, () => '/rejected/401'),
    ...Array.from({ length: 5 }, () => '/status/200'),
  ])
  await until(
    async () => (await totalOf(api, id, 'rejected_requests')) === 50 && (await totalOf(api, id, 'requests')) === 5,
    'all counts',
  )
  await killed.kill()
  killed.reachable = true
  await killed.start()
  await until(
    async () =>
      (
        await api.sql(
          `select 1 from request_leases join lease_holders using (source, boot)
            where tenant_id = $1 and ended and used = 5 and granted = 5`,
          [id],
        )
      ).length === 1,
    'the end of its lease',
  )
  const served = await sendAll(
    portsOf(gateways),
    name,
    Array.from({ length: quota }, () => '/status/200'),
  )
  t.equal(served.filter(({ status }) => status === 200).length, quota - 5)
})
