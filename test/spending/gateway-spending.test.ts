// Spending limits at a gateway: which requests, connections and SQL sessions it rejects, until when, and that they do not count.
import { once } from 'node:events'
import type { Route } from '@tenantry/contract'
import t from 'tap'
import { send } from '#test/gateway/support/gateway.ts'
import { proxyOf } from '#test/gateway/support/postgres-proxy.ts'
import { errorFields, exchange, startFakePostgres, startup } from '#test/gateway/support/sql-wire.ts'
import { startSetting } from '#test/gateway/support/gateway.ts'
import { openRaw, send as sendThrough, startQuotaSetting, totalOf } from '#test/quotas/support/gateways.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

const hour = 3_600_000
const later = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString()
const limits = { requests_per_month: null, connections: null, rate: null }

t.test('Requests beyond a spending limit get 402, use no quota, and are counted as refused only', async (t) => {
  const api = await startApi(t)
  const setting = await startQuotaSetting(t, api, 1)
  const [one] = setting.gateways
  if (one === undefined) throw new Error('there is no gateway')
  const { port } = one.gateway
  for (const dedicated of [false, true]) {
    const route = await setting.addTenant('Free')
    const { tenant_id: id, name } = route
    const opened = await openRaw(t, port, name)
    t.equal(opened.status, 101)
    t.equal((await sendThrough(port, `/t/${name}/echo`)).status, 200)
    const ended = once(opened.socket, 'close')
    const ends = later(2 * hour)
    const reached: Route = {
      ...route,
      generation: 2,
      dedicated,
      limits: { ...limits, ...route.limits, spending_reached_until: ends },
    }
    await setting.put(reached)
    await ended
    const rejected = await sendThrough(port, `/t/${name}/echo`)
    t.equal(rejected.status, 402)
    t.same(JSON.parse(rejected.body), {
      statusCode: '402',
      error: 'payment_required',
      message: 'The tenant has reached its spending limit of this month.',
      code: 'SPENDING_LIMIT_REACHED',
      resets_at: ends,
    })
    const retryAfter = Number(rejected.headers['retry-after'])
    t.ok(retryAfter > 7_000 && retryAfter <= 7_200, `Retry-After leads to the end of the month: ${retryAfter}`)
    t.match(await openRaw(t, port, name), { status: 402, code: 'SPENDING_LIMIT_REACHED' }, 'an upgrade')
    await setting.put({ ...reached, generation: 3, limits: { ...limits, ...route.limits } })
    t.equal((await sendThrough(port, `/t/${name}/echo`)).status, 200, 'served again without the limit')
    await until(
      async () => (await totalOf(api, id, 'refused_requests')) === 2 && (await totalOf(api, id, 'requests')) >= 3,
      'all are reported',
    )
    t.equal(await totalOf(api, id, 'requests'), 3, 'those that were refused are no requests')
    await until(async () => {
      const [row] = await api.sql('select sum(used)::int as used from request_leases where tenant_id = $1', [id])
      return row?.['used'] === 3
    }, 'only they use the quota')
  }
})

t.test('A limit ends at its time without the control plane, and does not wake a paused tenant', async (t) => {
  let ahead = 0
  const calls: string[] = []
  const fake = await startFakePostgres(t)
  const setting = await startSetting(t, {
    postgres: { port: 0 },
    now: () => Date.now() + ahead,
    elapsed: () => performance.now() + ahead,
    fetch: (...[url, init]: Parameters<typeof fetch>) => {
      calls.push(url instanceof Request ? url.url : String(url))
      return fetch(url, init)
    },
  })
  const spent = { limits: { ...limits, spending_reached_until: later(hour) } }
  const ready = await setting.add('ready', { ...spent, postgres: fake.address, dedicated: true })
  const paused = await setting.add('paused', { ...spent, phase: 'paused', dedicated: true })
  const suspended = await setting.add('suspended', { ...spent, phase: 'suspended', reason: 'unpaid' })
  const status = async ({ name }: Route) =>
    (await send(setting.gateway.port, { path: `/t/${name}/echo`, headers: { host: 'x' } })).status
  t.same([await status(ready), await status(paused), await status(suspended)], [402, 402, 403])
  const login = () => exchange(proxyOf(setting), startup(['user', `${ready.tenant_id}_admin`, 'database', 'x']))
  t.match(errorFields(await login()), { S: 'FATAL', C: '28000', M: /spending limit of this month/ })
  t.ok(calls.length > 0)
  t.same(
    calls.filter((url) => url.includes('/wake')),
    [],
    'the paused tenant sleeps',
  )
  ahead = hour + 1_000
  t.equal(await status(ready), 200, 'the next month begins')
})
