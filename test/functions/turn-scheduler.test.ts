// Which invocation gets an executor: bounds for each tenant, executors that stay free for others, and turns for all.
import fc from 'fast-check'
import t from 'tap'
import { TurnScheduler, type Held } from '#tenant-runtime/functions/executor/turn-scheduler.ts'
import { effort, seed } from '#test/support/effort.ts'

const limits = { total: 16, perTenant: 4, waitingPerFunction: 4, waitingPerTenant: 6 }

/** Starts as many invocations of a tenant as may run now. */
function startAll(scheduler: TurnScheduler<string>, tenant: string, now = 0): Held[] {
  const started: Held[] = []
  for (;;) {
    const held = scheduler.start(tenant, now)
    if (held === undefined) return started
    started.push(held)
  }
}

t.test('A tenant holds at most its limit, and never more than half of the executors', async (t) => {
  for (const [total, perTenant, expected] of [
    [16, 4, 4],
    [16, 100, 8],
    [6, 4, 3],
    [2, 4, 1],
    [1, 4, 1],
  ] as const)
    t.equal(
      startAll(new TurnScheduler({ ...limits, total, perTenant }), 'a').length,
      expected,
      `${expected} of ${total}`,
    )
})

t.test(
  'Four tenants that take all they can leave executors for others, also after they have become heavy',
  async (t) => {
    const scheduler = new TurnScheduler<string>(limits)
    const counts = ['a', 'b', 'c', 'd'].map((tenant) => startAll(scheduler, tenant).length)
    t.same(counts, [4, 4, 1, 1], 'further executors of a tenant come from one half only')
    const minute = 60_000
    t.equal(startAll(scheduler, 'neighbour', minute).length, 1)
    t.ok(scheduler.start('other neighbour', minute))
    t.same(
      ['a', 'b', 'c', 'd'].map((tenant) => startAll(scheduler, tenant, minute).length),
      [0, 0, 0, 0],
    )
  },
)

t.test('Heavy tenants leave a quarter of the executors to light ones, and are light again after a while', async (t) => {
  const scheduler = new TurnScheduler<string>(limits)
  const tenants = Array.from({ length: 16 }, (_, n) => `heavy ${n}`)
  const held = tenants.map((tenant) => scheduler.start(tenant, 0))
  t.notOk(held.includes(undefined), 'all are light at first')
  const after = 2_000
  for (const one of held) if (one !== undefined) scheduler.end(one, after)
  t.equal(tenants.filter((tenant) => scheduler.start(tenant, after) !== undefined).length, 12)
  t.ok(scheduler.start('light', after))
  t.ok(scheduler.start(tenants[15] ?? '', after + 16_000), 'one that waited meanwhile')
})

t.test('A tenant whose queue is full is rejected, and others are not', async (t) => {
  const scheduler = new TurnScheduler<string>({ ...limits, total: 1 })
  t.ok(scheduler.start('a', 0))
  for (let n = 0; n < 4; n++) t.equal(scheduler.wait('a', 'f', `${n}`, 0), undefined)
  t.equal(scheduler.wait('a', 'f', 'x', 0), 'waitingPerFunction')
  for (let n = 4; n < 6; n++) t.equal(scheduler.wait('a', 'g', `${n}`, 0), undefined)
  t.equal(scheduler.wait('a', 'h', 'x', 0), 'waitingPerTenant')
  t.equal(scheduler.wait('b', 'f', 'b', 0), undefined)
  scheduler.leave('a', 'f', '2')
  t.equal(scheduler.wait('a', 'h', 'h', 0), undefined, 'one that left makes room')
})

t.test('When all executors are in use, the latest long run is stopped for a light tenant that waits', async (t) => {
  const scheduler = new TurnScheduler<string>(limits)
  const held = Array.from({ length: 16 }, (_, n) => scheduler.start(`long ${n}`, n))
  const now = 10_020
  scheduler.wait('long 3', 'f', 'more', 0)
  t.equal(scheduler.excess(now), undefined, 'not for a tenant that runs already')
  scheduler.wait('light', 'f', 'first', now)
  t.equal(scheduler.excess(now), undefined, 'not at once')
  const later = now + 1_000
  const excess = scheduler.excess(later)
  t.equal(excess, held[15])
  t.equal(scheduler.excess(later), undefined, 'one at a time')
  if (excess !== undefined) scheduler.end(excess, later)
  t.equal(scheduler.next(later)?.item, 'first')

  const short = new TurnScheduler<string>(limits)
  for (let n = 0; n < 16; n++) short.start(`short ${n}`, 5_000)
  short.wait('light', 'f', 'first', 5_000)
  t.equal(short.excess(14_999), undefined, 'no run is stopped in its first ten seconds')
  t.ok(short.excess(15_000))
})

/** A tenant that always has `demand` invocations, each of `duration` milliseconds. */
const loads = fc.array(
  fc.record({ demand: fc.integer({ min: 1, max: 6 }), duration: fc.integer({ min: 1, max: 20_000 }) }),
  { minLength: 1, maxLength: 24 },
)

t.test('Bounds hold, no executor idles while it may run something, and nothing starves, under any load', async () => {
  fc.assert(
    fc.property(loads, fc.integer({ min: 1, max: 16 }), (load, total) => {
      const scheduler = new TurnScheduler<{ tenant: number; since: number }>({ ...limits, total })
      const running = new Map<Held, { tenant: number; ends: number }>()
      const heldBy = (tenant: number) => [...running.values()].filter((run) => run.tenant === tenant).length
      const maxWait = load.map(() => 0)
      const waiting = load.map(() => 0)
      const began = (held: Held, tenant: number, now: number) => {
        const others = heldBy(tenant)
        if (others >= Math.min(4, Math.max(1, total >> 1))) throw new Error('a tenant has too many executors')
        if (others > 0 && total - running.size <= total >> 1)
          throw new Error('a further executor was taken from the first half')
        running.set(held, { tenant, ends: now + (load[tenant]?.duration ?? 0) })
        if (running.size > total) throw new Error('there are more executors than allowed')
      }
      const admit = (now: number) => {
        for (let next = scheduler.next(now); next !== undefined; next = scheduler.next(now)) {
          const { tenant, since } = next.item
          maxWait[tenant] = Math.max(maxWait[tenant] ?? 0, now - since)
          waiting[tenant] = (waiting[tenant] ?? 1) - 1
          began(next.held, tenant, now)
        }
        if (running.size === 0 && waiting.some((count) => count > 0)) throw new Error('all executors idle')
      }
      const arrive = (tenant: number, now: number) => {
        const held = scheduler.start(String(tenant), now)
        if (held !== undefined) began(held, tenant, now)
        else if (scheduler.wait(String(tenant), 'f', { tenant, since: now }, now) === undefined)
          waiting[tenant] = (waiting[tenant] ?? 0) + 1
      }
      load.forEach(({ demand }, tenant) => {
        for (let n = 0; n < demand; n++) arrive(tenant, 0)
      })
      const step = 250
      for (let now = step; now <= 600_000; now += step) {
        for (const [held, { tenant, ends }] of running) {
          if (ends > now) continue
          running.delete(held)
          scheduler.end(held, now)
          admit(now)
          arrive(tenant, now)
        }
        admit(now)
      }
      const maxDuration = Math.max(...load.map(({ duration }) => duration))
      // Each turn of a queue passes all tenants, and a heavy tenant is light again after 16 s.
      const bound = 16_000 + limits.waitingPerFunction * (maxDuration + step) * (load.length + 1)
      return maxWait.every((wait) => wait <= bound)
    }),
    { numRuns: effort({ small: 30, full: 2_000 }), seed },
  )
})
