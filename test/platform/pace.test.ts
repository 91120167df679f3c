// The pace of work in bulk, with a clock of its own.
import t from 'tap'
import { Pace, paced } from '#control-plane/platform/pace.ts'

/** A clock on which time passes only while something sleeps. Each sleep takes longer than it should. */
function testClock(late = 0) {
  let now = 1_000_000
  const clock = {
    now: () => new Date(now),
    sleep: async (milliseconds: number, signal?: AbortSignal) => {
      signal?.throwIfAborted()
      now += milliseconds + late
    },
  }
  return { clock, elapsed: () => now - 1_000_000, advance: (milliseconds: number) => (now += milliseconds) }
}

const { signal } = new AbortController()

t.test('Large and small chunks pass at the rate, also when timers are late', async (t) => {
  for (const [bytes, count] of [
    [1_000_000, 100],
    [1_000, 100_000],
  ] as const) {
    const { clock, elapsed } = testClock(3)
    const pace = new Pace(50_000_000, clock, signal)
    for (let n = 0; n < count; n++) await pace.pass(bytes)
    t.ok(elapsed() > 1_950 && elapsed() < 2_050, `100 MB at 50 MB/s took ${elapsed()} ms`)
  }
})

t.test('Time in which nothing passed is not caught up on', async (t) => {
  const { clock, elapsed, advance } = testClock()
  const pace = new Pace(10_000_000, clock, signal)
  await pace.pass(1_000)
  advance(60_000)
  for (let n = 0; n < 11; n++) await pace.pass(1_000_000)
  t.ok(elapsed() - 60_000 > 950, `10 MB more than the first took ${elapsed() - 60_000} ms`)
})

t.test('A wait ends when the work is interrupted', async (t) => {
  const work = new AbortController()
  const pace = new Pace(1_000, testClock().clock, work.signal)
  const chunks = paced([Buffer.alloc(1_000), Buffer.alloc(1)] as unknown as AsyncIterable<Buffer>, pace)
  t.equal((await chunks.next()).value?.length, 1_000)
  work.abort(new Error('interrupted'))
  await t.rejects(chunks.next(), { message: 'interrupted' })
})
