// Which tenants are idle, according to the activity of all gateways of a region.
import fc from 'fast-check'
import t from 'tap'
import type { Activity } from '@tenantry/contract'
import type { RunningTenant } from '#control-plane/tenants/store-running.ts'
import { idleTenants, updateGateway, type WatchedGateway } from '#control-plane/pause/idle-plan.ts'

const begin = Date.parse('2026-03-01T12:00:00.000Z')
const at = (seconds: number) => new Date(begin + seconds * 1000)
const id = 't_00000000000000000001'
const tenant = (updated: number, pauseAfterSeconds?: number): RunningTenant => ({
  id,
  isolation: 'database-per-tenant',
  generation: 1,
  pauseAfterSeconds,
  updatedAt: at(updated),
})
const cluster = { isolation: 'cluster-per-tenant' } as const
const started = (seconds: number) => ({ since: at(seconds).toISOString() })
const activity = (last: number, open = 0, start = -1_000): Activity => ({
  ...started(start),
  tenants: { [id]: { last_request_at: at(last).toISOString(), open } },
})
const silence = (start: number): Activity => ({ ...started(start), tenants: {} })
const nothing = silence(-1_000)
const gateway = (since: number, reported: Activity): WatchedGateway => ({ since: at(since), activity: reported })

t.test('A tenant is idle after 30 s without activity at any gateway (now is 100 s)', async (t) => {
  const cases: { what: string; tenant?: RunningTenant; gateways: WatchedGateway[]; idle: boolean }[] = [
    { what: 'the last request is 30 s old', gateways: [gateway(0, activity(70))], idle: true },
    { what: 'the last request is 29 s old', gateways: [gateway(0, activity(71))], idle: false },
    { what: 'a request is in progress', gateways: [gateway(0, activity(0, 1))], idle: false },
    {
      what: 'a request is in progress at one of two gateways',
      gateways: [gateway(0, activity(0)), gateway(0, activity(0, 2))],
      idle: false,
    },
    {
      what: 'one of two gateways saw a request',
      gateways: [gateway(0, activity(0)), gateway(0, activity(90))],
      idle: false,
    },
    { what: 'no gateway has seen it, as is known for 30 s', gateways: [gateway(70, nothing)], idle: true },
    { what: 'no gateway has seen it, as is known for only 29 s', gateways: [gateway(71, nothing)], idle: false },
    {
      what: 'one of two gateways knows only 10 s',
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
    { what: 'an invalid start', gateways: [gateway(0, { ...nothing, since: 'yesterday' })], idle: false },
    { what: 'it was woken 10 s ago', tenant: tenant(90), gateways: [gateway(0, activity(0))], idle: false },
    { what: 'its own time is longer', tenant: tenant(0, 60), gateways: [gateway(0, activity(50))], idle: false },
    { what: 'its own time is shorter', tenant: tenant(0, 10), gateways: [gateway(0, activity(90))], idle: true },
    {
      what: 'a cluster without a time of its own',
      tenant: { ...tenant(0), ...cluster },
      gateways: [gateway(0, activity(0))],
      idle: false,
    },
    {
      what: 'a cluster with one',
      tenant: { ...tenant(0, 10), ...cluster },
      gateways: [gateway(0, activity(90))],
      idle: true,
    },
    { what: 'it is never paused', tenant: tenant(0, 0), gateways: [gateway(0, activity(0))], idle: false },
    { what: 'no gateway, nothing known', gateways: [], idle: false },
    {
      what: 'an invalid time',
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

t.test('The time of a gateway that has lost a tenant begins again', async (t) => {
  const running = new Set([id])
  const first = updateGateway(undefined, nothing, running, at(0))
  t.same(first.since, at(0))
  const second = updateGateway(first, activity(3), running, at(5))
  t.same(second.since, at(0), 'the time continues')
  t.same(updateGateway(second, activity(8), running, at(10)).since, at(0), 'and continues again')
  t.same(updateGateway(second, nothing, running, at(10)).since, at(10), 'the gateway has lost the tenant')
  t.same(
    updateGateway(second, nothing, new Set(), at(10)).since,
    at(0),
    'the tenant is deleted, so the gateway removed it',
  )
})

t.test('No tenant is paused before its time after a request, whichever gateways restart', async (t) => {
  // The events of each second: a request at a gateway, and a restart of a gateway before it is polled.
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
        gateways = gateways.map((before, index) =>
          updateGateway(before, known[index] ?? nothing, new Set([id]), at(now)),
        )
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
