// The hours of a home's books, from what was written and what was seen.
import fc from 'fast-check'
import { hourMilliseconds } from '@tenantry/contract'
import t from 'tap'
import { byteSeconds, checkedRuns, noRuns, type Point, type RunAmounts } from '#tenant-runtime/metering/book-hours.ts'
import { ObservedFiles } from '#tenant-runtime/storage/observed-files.ts'
import { effort, seed } from '#test/support/effort.ts'
import { hour0 } from './support/hours.ts'

t.test('the hours of random histories add up to their integral, whichever marks of hours were written', async () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          wait: fc.integer({ min: 0, max: 5 * hourMilliseconds * 1000 }),
          bytes: fc.integer({ min: 0, max: 1e12 }),
        }),
        { minLength: 1, maxLength: 30 },
      ),
      (changes) => {
        // As the trigger writes them: at a change, the first hour after the change before it and the last before it.
        const points: Point[] = [{ at: BigInt(hour0) * 1000n + 17n, value: 0n }]
        let [at, value, bytes] = [BigInt(hour0) * 1000n + 17n, 0n, 0n]
        const exact = new Map<number, bigint>()
        for (const change of changes) {
          const next = at + BigInt(change.wait)
          const hours: bigint[] = []
          for (let edge = (at / 3_600_000_000n + 1n) * 3_600_000_000n; edge <= next; edge += 3_600_000_000n)
            hours.push(edge)
          for (const edge of hours) exact.set(Number(edge / 1000n), value + bytes * (edge - at))
          for (const edge of new Set([hours[0], hours.at(-1)]))
            if (edge !== undefined) points.push({ at: edge, value: value + bytes * (edge - at) })
          value += bytes * (next - at)
          at = next
          bytes = BigInt(change.bytes)
        }
        points.push({ at, value })
        let sum = 0n
        for (let hour = hour0; BigInt(hour) * 1000n <= at; hour += hourMilliseconds) {
          const amount = byteSeconds(points, hour)
          const [from, to] = [exact.get(hour) ?? 0n, exact.get(hour + hourMilliseconds) ?? value]
          if (amount !== to / 1_000_000n - from / 1_000_000n) return false
          sum += amount
        }
        return sum === value / 1_000_000n
      },
    ),
    { numRuns: effort({ small: 200, full: 20_000 }), seed },
  )
})

t.test(
  'records are believed as long as nothing is missing from them, and where something is, what was seen counts',
  async (t) => {
    const runs = (functionInvocations: bigint, functionMilliseconds: bigint): RunAmounts => ({
      ...noRuns,
      functionInvocations,
      functionMilliseconds,
    })
    const [h1, h2] = [hour0 + hourMilliseconds, hour0 + 2 * hourMilliseconds]
    const records = new Map([
      [h1, runs(3n, 30n)],
      [h2, runs(1n, 10n)],
    ])
    t.equal(
      checkedRuns(
        records,
        new Map([
          [h1, runs(2n, 20n)],
          [h2, runs(2n, 20n)],
        ]),
        hour0,
      ),
      records,
      'a run at the edge of an hour is in the other one',
    )
    t.equal(
      checkedRuns(records, new Map([[hour0, runs(9n, 90n)]]), hour0),
      records,
      'what was seen in the first hour may be in the one before',
    )
    t.same(
      [
        ...checkedRuns(
          new Map([[h2, runs(1n, 10n)]]),
          new Map([
            [h1, runs(3n, 30n)],
            [h2, runs(0n, 0n)],
          ]),
          hour0,
        ),
      ],
      [
        [h2, runs(1n, 10n)],
        [h1, runs(3n, 30n)],
      ],
    )
  },
)

t.test('what two sweeps have both found unsaid was there between them, in the hours in which it was', async (t) => {
  const observed = new ObservedFiles()
  const [h1, h2] = [hour0 + hourMilliseconds, hour0 + 2 * hourMilliseconds]
  t.equal(observed.of('a'), undefined)
  observed.note('a', 5_000, 5_000, h1 - 10_000)
  observed.note('a', 5_000, 5_000, h1 - 500)
  t.same(observed.of('a')?.unsaid, new Map(), 'what is said is the home’s to count')
  observed.note('a', 5_000, 10, h1 + 2_000)
  observed.note('a', 3_000, 10, h2)
  observed.note('a', 9_000, 10, h2 + 1)
  t.same(observed.of('a'), {
    bytes: 9_000,
    at: h2 + 1,
    unsaid: new Map([
      [hour0, 2_500_000n],
      [h1, 10_000_000n + 3_000n * 3_598_000n],
      [h2, 3_000n],
    ]),
  })
  for (let n = 1; n <= 60; n++) observed.note('a', 1, 0, h2 + n * hourMilliseconds)
  t.equal(observed.of('a')?.unsaid.size, 48)
  observed.evict('a')
  t.equal(observed.of('a'), undefined)
})
