// The pure parts of quotas: the rate's arithmetic, what a lease is granted, and what operators may configure.
import t from 'tap'
import { decideLease } from '#control-plane/quotas/lease-plan.ts'
import { defaultHomeLimits, readHomeLimits, toRuntimeLimits } from '#control-plane/quotas/home-limits.ts'
import { defaultRateLimits, readRateLimits } from '#control-plane/quotas/rate-limits.ts'
import { Lease, type MonthClock } from '#gateway/quota/lease.ts'
import { RateGate } from '#gateway/quota/rate-gate.ts'
import { seed } from '#test/support/effort.ts'

/** Returns numbers from 0 to 1 that the seed determines (mulberry32). */
function seeded(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

t.test(
  'A burst is admitted at once, then one request for each part of a second, and the whole burst after a rest',
  async (t) => {
    const gate = new RateGate({ per_second: 10, burst: 5 })
    const taken = (now: number, count: number) => Array.from({ length: count }, () => gate.take(now))
    t.same(taken(1_000, 5), [0, 0, 0, 0, 0])
    t.ok(gate.take(1_000) > 99 && gate.take(1_000) < 101, 'the time until the next')
    t.same(gate.remaining(1_000), 0)
    t.same(gate.take(1_100), 0)
    t.ok(gate.take(1_100) > 0)
    t.same([gate.remaining(1_400), Math.round(gate.resetIn(1_400))], [3, 200])
    t.same(taken(9_000, 5), [0, 0, 0, 0, 0])
    t.ok(gate.take(9_000) > 0)
  },
)

t.test(`No stretch of time admits more than the burst and the rate allow (seed ${seed})`, async (t) => {
  const random = seeded(seed)
  const gate = new RateGate({ per_second: 100, burst: 20 })
  const times: number[] = []
  for (let now = 0; now < 20_000; now += random() * 8) if (gate.take(now) === 0) times.push(now)
  t.ok(times.length > 1_500, `${times.length} were admitted`)
  for (let from = 0; from < times.length; from += 7) {
    for (let to = from; to < times.length; to += 13) {
      const stretch = (times[to] ?? 0) - (times[from] ?? 0)
      if (to - from + 1 > 20 + stretch / 10 + 1) t.fail(`${to - from + 1} within ${stretch} ms`)
    }
  }
  t.same(gate.take(1e9), 0)
})

t.test('Waiting requests get whatever remains, and a lease in advance only an eighth of it', async (t) => {
  const decide = (more: Partial<Parameters<typeof decideLease>[0]>) =>
    decideLease({ limit: 10_000, own: 0, others: 0, reclaimable: 0, requested: 100, waiting: 1, ...more })
  t.same(decide({}), { amount: 100, state: 'granted', recall: false })
  t.same(decide({ others: 9_600 }), { amount: 50, state: 'granted', recall: false })
  t.same(decide({ others: 9_990, waiting: 8 }), { amount: 8, state: 'granted', recall: false })
  t.same(decide({ others: 9_997, waiting: 8, reclaimable: 5 }), { amount: 3, state: 'granted', recall: true })
  t.same(decide({ others: 10_000, reclaimable: 5 }), { amount: 0, state: 'pending', recall: true })
  t.same(decide({ others: 10_000 }), { amount: 0, state: 'exhausted', recall: false })
  t.same(
    decide({ others: 10_000, own: 10, reclaimable: 0 }),
    { amount: 0, state: 'exhausted', recall: false },
    'a plan that became smaller',
  )
  t.same(
    decide({ others: 10_000, reclaimable: 9, waiting: 0 }),
    { amount: 0, state: 'granted', recall: false },
    'no lease is recalled without a waiting request',
  )
})

/** Takes one request and counts it. @returns whether it was admitted */
function use(lease: Lease, at: number): boolean {
  if (!lease.take(at)) return false
  lease.settle(lease.term, true)
  return true
}

t.test('A lease ends with its month, and reports what was used before the hour', async (t) => {
  const end = Date.parse('2026-12-01T00:00:00Z')
  const start = end - 3_600_000 - 1_000
  const clock: MonthClock = { month: '2026-11', endsAt: end - start, wall: (elapsed) => start + elapsed }
  const lease = new Lease('t_00000000000000000000', 1_000)
  t.notOk(lease.take(0))
  lease.granted({ tenant_id: lease.tenantId, granted: 10, limit: 1_000, used: 0, state: 'granted' }, 0, clock, 0)
  t.ok(use(lease, 1) && use(lease, 2))
  t.match(lease.report(), { month: '2026-11', used: 2, used_before: 0, hour: '2026-11-30T22:00:00.000Z', keep: 10 })
  t.ok(use(lease, 1_300))
  t.match(lease.report(), { used: 3, used_before: 2, hour: '2026-11-30T23:00:00.000Z' })
  t.ok(use(lease, end - start - 1))
  t.notOk(lease.take(end - start), 'nothing of the old month is valid in the new one')
  t.match(lease.report(), { month: '2026-11', used: 4, keep: 4 })
  const next: MonthClock = { ...clock, month: '2026-12', endsAt: clock.endsAt + 31 * 86_400_000 }
  lease.granted(
    { tenant_id: lease.tenantId, granted: 5, limit: 1_000, used: 0, state: 'granted' },
    4,
    next,
    end - start + 10,
  )
  t.match(lease.report(), { month: '2026-12', used: 0, used_before: 0, keep: 5 })
  t.ok(lease.take(end - start + 20))
})

t.test('A lease ends once the control plane reports another month, and is reported once', async (t) => {
  const clock: MonthClock = {
    month: '2026-11',
    endsAt: 1_000_000,
    wall: (elapsed) => Date.parse('2026-11-20T10:10:00Z') + elapsed,
  }
  const lease = new Lease('t_00000000000000000000', 1_000)
  lease.checkMonth('2026-12')
  lease.granted({ tenant_id: lease.tenantId, granted: 10, limit: 1_000, used: 0, state: 'granted' }, 0, clock, 0)
  t.ok(use(lease, 1) && use(lease, 2))
  lease.checkMonth('2026-11')
  t.ok(use(lease, 3))
  lease.checkMonth('2026-12')
  t.notOk(lease.take(4))
  t.match(lease.report(), { month: '2026-11', used: 3, keep: 3 })
  lease.checkMonth('2026-12')
  t.notOk(lease.changed)
  lease.granted(
    { tenant_id: lease.tenantId, granted: 5, limit: 1_000, used: 0, state: 'granted' },
    3,
    { ...clock, month: '2026-12' },
    5,
  )
  t.ok(use(lease, 6))
  t.match(lease.report(), { month: '2026-12', used: 1, keep: 5 })
})

t.test(
  'A request in progress at the end of its month is used in that month, and none of the next is released for it',
  async (t) => {
    const clock: MonthClock = {
      month: '2026-11',
      endsAt: 1_000_000,
      wall: (elapsed) => Date.parse('2026-11-20T10:10:00Z') + elapsed,
    }
    for (const isUsed of [false, true]) {
      const lease = new Lease('t_00000000000000000000', 1)
      lease.granted({ tenant_id: lease.tenantId, granted: 1, limit: 1, used: 0, state: 'granted' }, 0, clock, 0)
      t.ok(lease.take(1))
      const { term } = lease
      lease.checkMonth('2026-12')
      t.match(lease.report(), { month: '2026-11', used: 1, keep: 1 })
      lease.settle(term, isUsed)
      t.notOk(lease.take(2))
      lease.granted(
        { tenant_id: lease.tenantId, granted: 1, limit: 1, used: 0, state: 'granted' },
        1,
        { ...clock, month: '2026-12', endsAt: 2_000_000 },
        3,
      )
      t.ok(lease.take(4))
      lease.settle(term, isUsed)
      t.notOk(lease.take(5))
      t.match(lease.report(), { month: '2026-12', used: 0, keep: 1 })
    }
  },
)

t.test('A rejected request releases what it held, first to a request that waits', async (t) => {
  const clock: MonthClock = { month: '2026-11', endsAt: 1_000, wall: () => Date.parse('2026-11-05T00:00:00Z') }
  const lease = new Lease('t_00000000000000000000', 3)
  lease.granted({ tenant_id: lease.tenantId, granted: 3, limit: 3, used: 0, state: 'granted' }, 0, clock, 0)
  t.ok(lease.take(1) && lease.take(1) && lease.take(1) && !lease.take(1))
  const { term } = lease
  t.match(lease.report(), { used: 0, keep: 3 }, 'a request in progress is not used yet')
  t.equal(lease.usedInAll, 3, 'but no other request may have it')
  lease.settle(term, false)
  lease.settle({}, false)
  t.ok(lease.take(1))
  t.notOk(lease.take(1))
  let gone = 0
  lease.waiters.add({ go: () => gone++, exhausted: () => undefined, unknown: () => undefined })
  t.equal(lease.settle(term, true).length, 0)
  for (const waiter of lease.settle(term, false)) waiter.go()
  t.equal(gone, 1)
  t.notOk(lease.take(1))
  lease.release()
  t.match(lease.report(), { used: 1, keep: 3 }, 'requests in progress keep their lease')
  lease.settle(term, true)
  lease.settle(term, true)
  t.match(lease.report(), { used: 3, keep: 3 })
  t.notOk(lease.take(1))
})

t.test('A served tenant requests a lease before its first request in each month, once', async (t) => {
  const clock: MonthClock = {
    month: '2026-11',
    endsAt: 1_000_000,
    wall: (elapsed) => Date.parse('2026-11-20T10:10:00Z') + elapsed,
  }
  const lease = new Lease('t_00000000000000000000', 1_000)
  t.notOk(lease.isLow)
  lease.serve(true)
  t.ok(lease.isLow && !lease.isHeld)
  t.match(lease.report(), { ask: 20, waiting: 0, keep: 0 })
  lease.granted({ tenant_id: lease.tenantId, granted: 20, limit: 1_000, used: 0, state: 'granted' }, 0, clock, 0)
  t.ok(!lease.isLow && lease.isHeld)
  lease.checkMonth('2026-12')
  t.ok(lease.isLow && !lease.isHeld)
  lease.report()
  lease.granted(
    { tenant_id: lease.tenantId, granted: 0, limit: 1_000, used: 0, state: 'granted' },
    0,
    { ...clock, month: '2026-12' },
    0,
  )
  t.ok(!lease.isLow && lease.isHeld, 'all is leased to others, and the gateway does not repeat its request')
  lease.serve(false)
  lease.serve(true)
  t.ok(lease.isLow, 'a tenant that is woken requests a lease again')
})

t.test('Limits of homes that operators set extend the defaults, and invalid ones are rejected', async (t) => {
  const read = (settings: Record<string, string>) => readHomeLimits((name) => settings[name])
  t.same(read({}), defaultHomeLimits)
  t.same(read({ TENANTRY_FUNCTION_LIMITS: 'Pro=2/5000', TENANTRY_EVENT_LIMITS: 'Free=2/700,Pro=none' }), {
    ...defaultHomeLimits,
    functions: { ...defaultHomeLimits.functions, Pro: { count: 2, bytes: 5_000 } },
    events: { ...defaultHomeLimits.events, Free: { days: 2, bytes: 700 }, Pro: null },
  })
  t.equal(read({ TENANTRY_SCHEMA_LIMITS: 'Free=none' }).schemas['Free'], null)
  for (const [name, form, invalid] of [
    ['TENANTRY_FUNCTION_LIMITS', 'COUNT/BYTES', ['Pro=2', 'Pro=1000001/5', 'Pro=0/5']],
    ['TENANTRY_SCHEMA_LIMITS', 'COUNT/BYTES', ['Pro=-1/5']],
    ['TENANTRY_EVENT_LIMITS', 'DAYS/BYTES', ['Pro=366/5', 'Pro=7']],
    ['TENANTRY_INVOCATION_LIMITS', 'DAYS/COUNT', ['Pro=0/5', 'Pro=1.5/5']],
    ['TENANTRY_REALTIME_LIMITS', 'MESSAGES/BYTES', ['Pro=0/5', 'Pro=5/3000001']],
  ] as const)
    for (const text of invalid)
      t.throws(() => read({ [name]: text }), { message: `${name}: "${text}" is not PLAN=${form} or PLAN=none` })
  t.same(toRuntimeLimits(read({ TENANTRY_INVOCATION_LIMITS: 'Free=1/2' }), 'Free'), {
    functions: 50,
    function_bytes: 100_000_000,
    schemas: 200,
    schema_bytes: 4_000_000,
    event_days: 7,
    event_bytes: 64_000_000,
    invocation_days: 1,
    invocations: 2,
    realtime_messages: 100,
    realtime_payload_bytes: 256_000,
  })
  t.same(new Set(Object.values(toRuntimeLimits(defaultHomeLimits, 'Another'))), new Set([null]))
})

t.test('Rates that operators set extend the defaults, and invalid ones are rejected', async (t) => {
  t.same(readRateLimits(''), defaultRateLimits)
  t.same(readRateLimits('Free=5/7, Pro=none'), { ...defaultRateLimits, Free: { per_second: 5, burst: 7 }, Pro: null })
  for (const text of ['Free', 'Free=0/5', 'Free=5', 'Free=5/5/5', 'Free=-1/5', 'Free=1.5/2', 'Free=10000000/5', '=5/5'])
    t.throws(() => readRateLimits(text), { message: new RegExp(`"${text}"`) })
  t.throws(() => readRateLimits('Gold=5/5'), { message: /unknown plan "Gold"\. Allowed: Free, Pro, Enterprise/ })
})
