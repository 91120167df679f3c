// The usage of a home in each hour, computed from its records and from what the runtime observed.
import fc from 'fast-check'
import { hourMilliseconds } from '@tenantry/contract'
import t from 'tap'
import { byteSeconds, checkedRuns, noRuns, type Point, type RunAmounts } from '#tenant-runtime/metering/book-hours.ts'
import { ObservedFiles } from '#tenant-runtime/storage/observed-files.ts'
import { effort, seed } from '#test/support/effort.ts'
import { hour0 } from './support/hours.ts'

t.test('The hours of random histories add up to their integral, whichever hour boundaries were recorded', async () => {
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
        // As the trigger writes them: at a change, the first hour boundary after the previous change and the last
        // before this one.
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

t.test('Records are used while they are complete; where they are incomplete, observed usage counts', async (t) => {
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
    'a run at the boundary of an hour may be in the other hour',
  )
  t.equal(
    checkedRuns(records, new Map([[hour0, runs(9n, 90n)]]), hour0),
    records,
    'a run observed in the first hour may be recorded in the one before',
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
})

t.test('Bytes that two sweeps find without a record count in the hours between the sweeps', async (t) => {
  const observed = new ObservedFiles()
  const [h1, h2] = [hour0 + hourMilliseconds, hour0 + 2 * hourMilliseconds]
  t.equal(observed.get('a'), undefined)
  observed.record('a', 5_000, 5_000, h1 - 10_000)
  observed.record('a', 5_000, 5_000, h1 - 500)
  t.same(observed.get('a')?.unreported, new Map(), 'recorded bytes are counted by the home')
  observed.record('a', 5_000, 10, h1 + 2_000)
  observed.record('a', 3_000, 10, h2)
  observed.record('a', 9_000, 10, h2 + 1)
  t.same(observed.get('a'), {
    bytes: 9_000,
    at: h2 + 1,
    unreported: new Map([
      [hour0, 2_500_000n],
      [h1, 10_000_000n + 3_000n * 3_598_000n],
      [h2, 3_000n],
    ]),
  })
  for (let n = 1; n <= 60; n++) observed.record('a', 1, 0, h2 + n * hourMilliseconds)
  t.equal(observed.get('a')?.unreported.size, 48)
  observed.evict('a')
  t.equal(observed.get('a'), undefined)
})
