// Who is idle, decided from what all gateways of a region say.
import fc from 'fast-check'
import t from 'tap'
import type { Activity } from '@tenantry/contract'
import type { RunningTenant } from '#control-plane/tenants/store-running.ts'
import { idleTenants, watched, type WatchedGateway } from '#control-plane/pause/idle-plan.ts'

const begin = Date.parse('2026-03-01T12:00:00.000Z')
const at = (seconds: number) => new Date(begin + seconds * 1000)
const id = 't_00000000000000000001'
const tenant = (updated: number, pauseAfterSeconds?: number): RunningTenant => ({
  id,
  generation: 1,
  pauseAfterSeconds,
  updatedAt: at(updated),
})
const started = (seconds: number) => ({ since: at(seconds).toISOString() })
const activity = (last: number, open = 0, start = -1_000): Activity => ({
  ...started(start),
  tenants: { [id]: { last_request_at: at(last).toISOString(), open } },
})
const silence = (start: number): Activity => ({ ...started(start), tenants: {} })
const nothing = silence(-1_000)
const gateway = (since: number, reported: Activity): WatchedGateway => ({ since: at(since), activity: reported })

t.test('the cases: now is 100 s, the region pauses after 30 s', async (t) => {
  const cases: { what: string; tenant?: RunningTenant; gateways: WatchedGateway[]; idle: boolean }[] = [
    { what: 'the last request is 30 s old', gateways: [gateway(0, activity(70))], idle: true },
    { what: 'the last request is 29 s old', gateways: [gateway(0, activity(71))], idle: false },
    { what: 'a request is under way', gateways: [gateway(0, activity(0, 1))], idle: false },
    {
      what: 'a request is under way at one of two gateways',
      gateways: [gateway(0, activity(0)), gateway(0, activity(0, 2))],
      idle: false,
    },
    {
      what: 'one of two gateways saw a request',
      gateways: [gateway(0, activity(0)), gateway(0, activity(90))],
      idle: false,
    },
    { what: 'no gateway has seen it, and that is known of 30 s', gateways: [gateway(70, nothing)], idle: true },
    { what: 'no gateway has seen it, but that is known of 29 s only', gateways: [gateway(71, nothing)], idle: false },
    {
      what: 'one of two gateways knows of 10 s only',
      gateways: [gateway(0, activity(0)), gateway(90, nothing)],
      idle: false,
    },
    { what: 'no gateway has seen it, but it was started 29 s ago', gateways: [gateway(0, silence(71))], idle: false },
    { what: 'no gateway has seen it, and it was started 30 s ago', gateways: [gateway(0, silence(70))], idle: true },
    {
      what: 'one of two gateways was started 10 s ago',
      gateways: [gateway(0, activity(0)), gateway(0, silence(90))],
      idle: false,
    },
    { what: 'a start that is none', gateways: [gateway(0, { ...nothing, since: 'yesterday' })], idle: false },
    { what: 'it was woken 10 s ago', tenant: tenant(90), gateways: [gateway(0, activity(0))], idle: false },
    { what: 'its own time is longer', tenant: tenant(0, 60), gateways: [gateway(0, activity(50))], idle: false },
    { what: 'its own time is shorter', tenant: tenant(0, 10), gateways: [gateway(0, activity(90))], idle: true },
    { what: 'it is never paused', tenant: tenant(0, 0), gateways: [gateway(0, activity(0))], idle: false },
    { what: 'no gateway, nothing known', gateways: [], idle: false },
    {
      what: 'a time that is none',
      gateways: [gateway(0, { ...nothing, tenants: { [id]: { last_request_at: 'yesterday', open: 0 } } })],
      idle: false,
    },
    { what: 'a gateway whose clock is ahead', gateways: [gateway(0, activity(500))], idle: false },
  ]
  for (const { what, tenant: one = tenant(0), gateways, idle } of cases) {
    t.equal(idleTenants([one], gateways, 30, at(100)).length, idle ? 1 : 0, what)
  }
  t.same(idleTenants([tenant(0)], [gateway(0, activity(0))], 0, at(100)), [], 'a region that never pauses')
})

t.test('of a gateway that has forgotten somebody it counts from then', async (t) => {
  const running = new Set([id])
  const first = watched(undefined, nothing, running, at(0))
  t.same(first.since, at(0))
  const second = watched(first, activity(3), running, at(5))
  t.same(second.since, at(0), 'it goes on')
  t.same(watched(second, activity(8), running, at(10)).since, at(0), 'and on')
  t.same(watched(second, nothing, running, at(10)).since, at(10), 'it has forgotten the tenant')
  t.same(watched(second, nothing, new Set(), at(10)).since, at(0), 'the tenant is gone, so the gateway forgot it')
})

t.test('nobody is paused earlier than its time after any request, whatever gateways restart', async (t) => {
  // What happens at each second: a request at a gateway, and whether a gateway is started anew before it is asked.
  const second = fc.record({ request: fc.option(fc.nat(1)), restart: fc.option(fc.nat(1)) })
  const holds = fc.property(
    fc.array(second, { maxLength: 60 }),
    fc.integer({ min: 5, max: 20 }),
    fc.integer({ min: 1, max: 5 }),
    (seconds, after, every) => {
      const known: Activity[] = [nothing, nothing]
      let gateways: (WatchedGateway | undefined)[] = [undefined, undefined]
      const starts = [-1_000, -1_000]
      let lastRequest = 0
      for (const [now, { request, restart }] of seconds.entries()) {
        if (request !== null) {
          lastRequest = now
          known[request] = activity(now, 0, starts[request])
        }
        if (restart !== null) {
          starts[restart] = now
          known[restart] = silence(now)
        }
        if (now % every !== 0) continue
        gateways = gateways.map((before, index) => watched(before, known[index] ?? nothing, new Set([id]), at(now)))
        const idle = idleTenants(
          [tenant(0, after)],
          gateways.filter((one) => one !== undefined),
          0,
          at(now),
        )
        if (idle.length > 0 && now - lastRequest < after) return false
      }
      return true
    },
  )
  fc.assert(holds, { seed: 20_260_301, numRuns: 2_000 })
  t.pass('2,000 histories')
})
