// Every request counts exactly once, however it ends, and every count reaches the control plane, whatever happens to a
// push.
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { Counter } from '@tenantry/contract'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { WebSocket } from 'ws'
import { CounterStore } from '#gateway/meter/counter-store.ts'
import { Meter } from '#gateway/meter/meter.ts'
import { seed } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { send, newTenantId, startSetting, type Setting } from './support/gateway.ts'

const hour = 3_600_000

function requests(setting: Setting, tenantId: string, more: Partial<Counter> = {}): number {
  return setting.control.total(
    (counter) =>
      counter.meter === (more.meter ?? 'requests') &&
      counter.tenant_id === tenantId &&
      Object.entries(more).every(([name, value]) => counter[name as keyof Counter] === value),
  )
}

function egress(setting: Setting, tenantId: string): number {
  return setting.control.total((counter) => counter.meter === 'egress_bytes' && counter.tenant_id === tenantId)
}

t.test('A thousand mixed requests, some of them aborted, count exactly', async (t) => {
  const setting = await startSetting(t)
  const { gateway, upstream } = setting
  const tenants = [
    await setting.add('one'),
    await setting.add('two'),
    await setting.add('held', { phase: 'suspended' }),
  ]
  t.comment(`seed ${seed}`)
  const random = chanceOf(seed).next
  const expected = new Map<string, number>()
  const bytes = new Map<string, number>()
  let rejected = 0
  const expect = (
    tenantId: string,
    group: string,
    method: string,
    status_class: string,
    meter: Counter['meter'] = 'requests',
  ) => {
    const key = JSON.stringify([tenantId, group, method, status_class, meter])
    expected.set(key, (expected.get(key) ?? 0) + 1)
  }
  const kinds = [
    { path: '/rest/v1/bytes/100', method: 'GET', group: 'rest', status: '2xx', body: undefined },
    { path: '/storage/v1/bytes/70000', method: 'GET', group: 'storage', status: '2xx', body: undefined },
    { path: '/storage/v1/sink', method: 'POST', group: 'storage', status: '2xx', body: 'x'.repeat(5000) },
    { path: '/functions/v1/status/500', method: 'POST', group: 'functions', status: '5xx', body: '{}' },
    { path: '/rest/v1/status/404', method: 'PATCH', group: 'rest', status: '4xx', body: '{}' },
    { path: '/rest/v1/status/204', method: 'DELETE', group: 'rest', status: '2xx', body: undefined },
    { path: '/status/304', method: 'HEAD', group: 'other', status: '3xx', body: undefined },
    { path: '/rest/v1/close', method: 'PUT', group: 'rest', status: '5xx', body: 'x' },
    { path: '/rest/v1/hang', method: 'GET', group: 'rest', status: 'abort', body: undefined },
    { path: '/functions/v1/chunked/50', method: 'PROPFIND', group: 'functions', status: '2xx', body: undefined },
  ] as const
  const work = Array.from({ length: 1000 }, () => ({
    tenant: tenants[Math.floor(random() * tenants.length)] ?? tenants[0],
    kind: kinds[Math.floor(random() * kinds.length)] ?? kinds[0],
  }))
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let next = work.pop(); next !== undefined; next = work.pop()) {
        const { tenant, kind } = next
        if (tenant === undefined) continue
        const method = kind.method === 'PROPFIND' ? 'OTHER' : kind.method
        const isHeld = tenant.phase === 'suspended'
        if (kind.status === 'abort' && !isHeld) {
          await leaveInTheMiddle(setting, `/t/${tenant.name}${kind.path}`)
          expect(tenant.tenant_id, kind.group, method, '4xx')
          continue
        }
        const { body } = await send(gateway.port, {
          path: `/t/${tenant.name}${kind.path}`,
          method: kind.method,
          ...(kind.body === undefined ? {} : { body: kind.body }),
        })
        if (isHeld) {
          expect(tenant.tenant_id, kind.group, method, '4xx', 'rejected_requests')
          rejected++
          continue
        }
        expect(tenant.tenant_id, kind.group, method, kind.status)
        bytes.set(tenant.tenant_id, (bytes.get(tenant.tenant_id) ?? 0) + body.length)
      }
    }),
  )
  await until(() => upstream.open === 0)
  await gateway.stop()
  for (const [key, count] of expected) {
    const [tenant_id, group, method, status_class, meter] = JSON.parse(key) as [
      string,
      string,
      string,
      string,
      Counter['meter'],
    ]
    t.equal(requests(setting, tenant_id, { group, method, status_class, meter }), count, key)
  }
  t.ok(rejected > 0)
  t.equal(
    setting.control.total(({ meter }) => meter === 'rejected_requests'),
    rejected,
    'rejected requests are counted separately',
  )
  t.equal(
    tenants.reduce((sum, { tenant_id }) => sum + requests(setting, tenant_id), 0),
    1000 - rejected,
    'nothing else was counted',
  )
  t.equal(
    setting.control.total(({ meter }) => meter === 'latency'),
    1000 - rejected,
    'each request is in one bucket of the latencies',
  )
  for (const { tenant_id } of tenants)
    t.equal(egress(setting, tenant_id), bytes.get(tenant_id) ?? 0, "egress is the bodies' bytes")
})

t.test('A request is counted before its response ends', async (t) => {
  const setting = await startSetting(t, { pushInterval: 5 })
  const { tenant_id } = await setting.add('acme')
  const request = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: setting.gateway.port,
    path: '/t/acme/events',
  }).end()
  await once(request, 'response')
  await until(() => requests(setting, tenant_id) === 1, 'the count of an endless response')
  request.destroy()
  t.equal(requests(setting, tenant_id), 1)
})

t.test('Requests for no tenant and unreadable ones count for no tenant', async (t) => {
  const setting = await startSetting(t)
  await setting.add('acme')
  await send(setting.gateway.port, { path: '/t/missing/x' })
  await send(setting.gateway.port, { path: '/health' })
  await send(setting.gateway.port, { path: '/t/acme/x', headers: { 'x-big': 'a'.repeat(20_000) } })
  await setting.gateway.stop()
  t.equal(
    setting.control.total(() => true),
    0,
  )
})

t.test('Push connections count at their peak, and their bytes as egress', async (t) => {
  const setting = await startSetting(t)
  const { tenant_id } = await setting.add('acme')
  const open = async () => {
    const client = new WebSocket(`ws://127.0.0.1:${setting.gateway.port}/t/acme/ws`)
    await once(client, 'open')
    return client
  }
  const begin = performance.now()
  const first = await open()
  const second = await open()
  first.send('12345')
  await once(first, 'message')
  const closed = once(second, 'close')
  second.close()
  await closed
  const third = await open()
  const events = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: setting.gateway.port,
    path: '/t/acme/events',
  }).end()
  await once(events, 'response')
  for (const client of [first, third]) client.terminate()
  events.destroy()
  await setting.gateway.stop()
  const peak = setting.control.total(
    (counter) => counter.meter === 'connections_peak' && counter.tenant_id === tenant_id,
  )
  t.equal(peak, 3)
  const time = setting.control.total(
    (counter) => counter.meter === 'connection_milliseconds' && counter.tenant_id === tenant_id,
  )
  const whole = performance.now() - begin
  t.ok(time > 0 && time <= 3 * whole + 3, `${time} ms of three connections within ${whole} ms`)
  t.equal(requests(setting, tenant_id), 4)
  t.ok(egress(setting, tenant_id) >= 7 + 'data: first\n\n'.length, 'the echoed frame and the event')
})

t.test('Lost acknowledgements, errors and an absent control plane change no count', async (t) => {
  const setting = await startSetting(t)
  const { tenant_id } = await setting.add('acme')
  const responses = ['lost', 'rejected', 'lost', 'stored'] as const
  setting.control.pushResponse = (nth) => responses[nth % responses.length] ?? 'stored'
  for (let n = 0; n < 40; n++) {
    await send(setting.gateway.port, { path: '/t/acme/rest/v1/bytes/10' })
    if (n === 10) await setting.control.stop()
    if (n === 30) await setting.control.start()
  }
  setting.control.pushResponse = () => 'stored'
  await until(() => requests(setting, tenant_id) === 40, 'all counts')
  t.equal(egress(setting, tenant_id), 400)
  t.equal(new Set(setting.control.pushes.map(({ boot }) => boot)).size, 1)
  for (const { source } of setting.control.pushes) t.equal(source, 'gateway-test-0')
  await setting.restart()
  await until(async () => (await send(setting.gateway.port, { path: '/t/acme/rest/v1/bytes/10' })).status === 200)
  await setting.gateway.stop()
  t.equal(requests(setting, tenant_id), 41, 'a new boot counts separately from the old one')
  t.same(
    setting.control.pushes
      .filter(({ stopped }) => stopped)
      .map(({ counters, complete_until }) => [counters, typeof complete_until]),
    [
      [[], 'string'],
      [[], 'string'],
    ],
    'each boot reports at its end that it has nothing more to push',
  )
  t.equal(setting.control.pushes.at(-1)?.stopped, true)
  t.equal(new Set(setting.control.pushes.map(({ boot }) => boot)).size, 2)
})

t.test('A gateway that stops with unacknowledged counts does not report that it has pushed all', async (t) => {
  const setting = await startSetting(t)
  const { tenant_id } = await setting.add('acme')
  await send(setting.gateway.port, { path: '/t/acme/rest/v1/bytes/10' })
  await until(() => requests(setting, tenant_id) === 1)
  setting.control.pushResponse = () => 'rejected'
  await send(setting.gateway.port, { path: '/t/acme/rest/v1/bytes/10' })
  await setting.gateway.stop()
  t.same(
    setting.control.pushes.filter(({ stopped }) => stopped),
    [],
  )
})

t.test('Hours are separate, and closed ones are removed once acknowledged', async (t) => {
  let now = Date.parse('2026-05-01T09:59:59.000Z')
  const store = new CounterStore(() => now, 1000)
  const meter = new Meter({ store, now: () => now, elapsed: () => now })
  const [a, b] = [newTenantId(), newTenantId()]
  meter.tenant(a).request('rest', 'GET', 200, 10)
  meter.tenant(b).opened()
  const first = store.take(10)
  const firstCounters = first.map((cell) => ({ ...cell.key, value: cell.value }))
  now += hour
  meter.tenant(a).request('rest', 'GET', 200, 10.1)
  meter.tick()
  const second = store.take(10)
  t.same(
    firstCounters.map(({ tenant_id, meter, bucket }) => [tenant_id, meter, bucket]),
    [
      [a, 'requests', ''],
      [a, 'latency', '10'],
      [b, 'connections_peak', ''],
    ],
  )
  t.same(
    second.map(({ key, value }) => [key.tenant_id, key.hour, key.meter, key.bucket, value]),
    [
      [a, '2026-05-01T10:00:00.000Z', 'requests', '', 1],
      [a, '2026-05-01T10:00:00.000Z', 'latency', '20', 1],
      [b, '2026-05-01T10:00:00.000Z', 'connections_peak', '', 1],
      [b, '2026-05-01T10:00:00.000Z', 'connection_milliseconds', '', hour],
    ],
    'an open connection counts in the new hour too',
  )
  t.equal(store.size, 7)
  t.equal(store.completeUntil(), Date.parse('2026-05-01T09:00:00.000Z') / hour)
  store.putBack(second)
  store.acknowledge(firstCounters, first)
  t.equal(store.size, 4, 'the closed hour is gone')
  t.equal(store.completeUntil(), Date.parse('2026-05-01T10:00:00.000Z') / hour)
  now -= 2 * hour
  meter.tenant(a).request('rest', 'GET', 200, 11)
  t.equal(store.size, 4, 'a clock that steps back opens no old hour')
  const again = store.take(10)
  t.equal(again.find(({ key }) => key.meter === 'requests')?.value, 2, 'cumulative')
})

t.test('A counter that grows while it is pushed is pushed again', async (t) => {
  const store = new CounterStore(() => 0, 1000)
  const id = newTenantId()
  store.add(id, 'egress_bytes', { group: 'rest' }, 5)
  const cells = store.take(10)
  const pushed = cells.map((cell) => ({ ...cell.key, value: cell.value }))
  store.add(id, 'egress_bytes', { group: 'rest' }, 7)
  store.acknowledge(pushed, cells)
  t.same(
    store.take(10).map(({ value }) => value),
    [12],
  )
  t.same(store.take(10), [])
})

t.test('Memory is limited while no control plane takes the counters', async (t) => {
  let now = 0
  const store = new CounterStore(() => now, 50)
  for (let index = 0; index < 10; index++) {
    for (let n = 0; n < 20; n++)
      store.add(newTenantId(), 'requests', { group: 'rest', method: 'GET', statusClass: '2xx' }, 1)
    now += hour
  }
  t.equal(store.enforceLimit(), 160, 'the oldest hours are dropped, and their counts are returned')
  t.equal(store.size, 40)
  t.equal(store.take(1000).length, 40)
})

/** Sends a request, and hangs up once it has reached the runtime. */
async function leaveInTheMiddle(setting: Setting, path: string): Promise<void> {
  const unique = `${path}?${Math.random()}`
  const request = httpRequest({ agent: false, host: '127.0.0.1', port: setting.gateway.port, path: unique }).end()
  request.on('error', () => undefined)
  const suffix = unique.slice(unique.indexOf('?'))
  await until(() => setting.upstream.seen.some(({ url }) => url.endsWith(suffix)))
  const before = setting.upstream.aborted
  request.destroy()
  await until(() => setting.upstream.aborted > before)
}
