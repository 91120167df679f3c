// Requests that are rejected before they reach a tenant's data cost the tenant nothing, and are limited by client address.
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { startSetting, type Setting } from './support/gateway.ts'

const attacker = '127.0.0.91'
const neighbour = '127.0.0.92'
const limits = { rejectionsPerSecond: 50, rejectionsBurst: 500 }
const [perSecond, burst] = [limits.rejectionsPerSecond, limits.rejectionsBurst]

/** Sends requests one after the other over one kept connection, or each over its own. */
function clientAt(t: Test, { gateway }: Setting, localAddress: string, keepAlive = false) {
  const agent = new Agent({ keepAlive, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return async (path: string, headers: Record<string, string> = {}) => {
    const request = httpRequest({ agent, host: '127.0.0.1', port: gateway.port, path, localAddress, headers })
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    let body = ''
    for await (const chunk of response) body += String(chunk)
    return { status: response.statusCode ?? 0, body, retryAfter: response.headers['retry-after'] }
  }
}

async function countStatus(times: number, one: () => Promise<{ status: number }>): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (let n = 0; n < times; n++) {
    const { status } = await one()
    counts[status] = (counts[status] ?? 0) + 1
  }
  return counts
}

for (const [what, path] of [
  ['invalid credentials', '/t/acme/rejected/401'],
  ['internal paths', '/t/acme/internal/v1/live'],
  ['unknown tenants', '/t/nobody/rest/v1/x'],
  ['no tenant', '/nothing'],
  ['suspended tenants', '/t/suspended/rest/v1/x'],
] as const) {
  t.test(`Requests with ${what} are limited by address, and those of others are served`, async (t) => {
    let now = 0
    const setting = await startSetting(t, { limits, elapsed: () => now })
    await setting.add('acme')
    await setting.add('suspended', { phase: 'suspended' })
    const attack = clientAt(t, setting, attacker, true)
    const counts = await countStatus(burst + 20, () => attack(path))
    t.equal(counts[429], 20)
    const reached = setting.upstream.seen.length
    const limited = await attack('/t/acme/bytes/3')
    t.match(limited, { status: 429, retryAfter: '1', body: /TOO_MANY_REJECTIONS/ })
    t.equal(setting.upstream.seen.length, reached, 'the runtime does no work for it')
    t.equal((await clientAt(t, setting, neighbour)('/t/acme/bytes/3')).status, 200)
    now += 1_000
    t.equal((await countStatus(perSecond + 5, () => attack(path)))[429], 5, 'the rate admits some each second')
    now += 60_000
    t.equal((await attack('/t/acme/bytes/3')).status, 200)
  })
}

t.test('Minutes of rejected requests leave the month and the rate of a tenant unused', async (t) => {
  const seconds = effort({ small: 10, full: 120 })
  let now = 0
  const setting = await startSetting(t, { limits, elapsed: () => now })
  const { tenant_id: id } = await setting.add('acme', {
    limits: { requests_per_month: null, connections: null, rate: { per_second: 100, burst: 500 } },
  })
  const attack = clientAt(t, setting, attacker, true)
  const user = clientAt(t, setting, neighbour, true)
  const served: number[] = []
  for (let second = 0; second < seconds; second++) {
    await countStatus(100, () => attack('/t/acme/rejected/401'))
    served.push((await user('/t/acme/bytes/3')).status)
    now += 1_000
  }
  t.same(new Set(served), new Set([200]))
  t.same(await countStatus(500, () => user('/t/acme/bytes/3')), { 200: 500 }, 'a whole burst remains')
  const totalOf = (name: string) => setting.control.total(({ meter, tenant_id }) => meter === name && tenant_id === id)
  await until(() => totalOf('requests') === seconds + 500, 'the counts')
  t.equal(totalOf('rejected_requests') + totalOf('refused_requests'), seconds * 100)
})

t.test('Rejected requests do not limit an address whose requests are mostly served', async (t) => {
  const setting = await startSetting(t, { limits: { rejectionsPerSecond: 1, rejectionsBurst: 5 }, elapsed: () => 0 })
  await setting.add('acme')
  const mixed = clientAt(t, setting, attacker)
  for (let n = 0; n < 40; n++) {
    t.equal((await mixed('/t/acme/bytes/3')).status, 200)
    t.equal((await mixed('/t/acme/rejected/401')).status, 401)
  }
})

t.test(
  'A connection whose last request was served continues, although others of its address are limited',
  async (t) => {
    const setting = await startSetting(t, { limits: { rejectionsPerSecond: 1, rejectionsBurst: 5 }, elapsed: () => 0 })
    await setting.add('acme')
    const user = clientAt(t, setting, attacker, true)
    t.equal((await user('/t/acme/bytes/3')).status, 200)
    const attack = clientAt(t, setting, attacker)
    t.same(await countStatus(10, () => attack('/t/acme/rejected/401')), { 401: 5, 429: 5 })
    t.equal((await user('/t/acme/bytes/3')).status, 200)
    t.equal((await user('/t/acme/rejected/401')).status, 401)
    t.equal((await user('/t/acme/bytes/3')).status, 429, 'after a rejected one it is like the others')
  },
)

t.test('What is not the fault of the client does not limit its address', async (t) => {
  const setting = await startSetting(t, {
    limits: { rejectionsPerSecond: 1, rejectionsBurst: 5, reachTimeout: 0 },
    elapsed: () => 0,
  })
  await setting.add('acme')
  await setting.add('away', { runtimes: ['http://127.0.0.1:1'] })
  await setting.add('pending', { phase: 'pending' })
  await setting.add('rated', {
    limits: { requests_per_month: null, connections: null, rate: { per_second: 1, burst: 1 } },
  })
  const client = clientAt(t, setting, attacker)
  await client('/t/rated/bytes/3')
  t.same(await countStatus(10, () => client('/t/away/bytes/3')), { 503: 10 })
  t.same(await countStatus(10, () => client('/t/pending/bytes/3')), { 503: 10 })
  t.same(await countStatus(10, () => client('/t/rated/bytes/3')), { 429: 10 })
  t.equal((await client('/t/acme/bytes/3')).status, 200)
})

t.test('Behind a trusted proxy, only the address that it reports is limited', async (t) => {
  const setting = await startSetting(t, {
    limits: { rejectionsPerSecond: 1, rejectionsBurst: 5 },
    elapsed: () => 0,
    trustedProxies: parseIpv4Ranges(attacker) ?? [],
  })
  await setting.add('acme')
  const proxy = clientAt(t, setting, attacker, true)
  const through = (client: string, path: string) => proxy(path, { 'x-forwarded-for': client })
  await countStatus(10, () => through('192.0.2.1', '/t/acme/rejected/401'))
  t.equal((await through('192.0.2.1', '/t/acme/bytes/3')).status, 429)
  t.equal((await through('192.0.2.2', '/t/acme/bytes/3')).status, 200)
})
