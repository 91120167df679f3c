// Packed months hold exactly the hours that were added, and an idle hour takes one byte.
import fc from 'fast-check'
import t from 'tap'
import { amountsText, parseAmounts } from '#control-plane/usage/amounts-text.ts'
import { amountNames, noAmounts, type Amounts, type HourBucket } from '#control-plane/usage/hour-bucket.ts'
import { addToCell, cellList, packCells, unpackCells, type Cells } from '#control-plane/usage/packed-cells.ts'
import { appendHours, unpackHours } from '#control-plane/usage/packed-hours.ts'
import { effort, seed } from '#test/support/effort.ts'

const month = new Date('2026-05-01T00:00:00Z')
const hourOf = (index: number) => new Date(month.getTime() + index * 3_600_000)
const size = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0n) },
  fc.bigInt({ min: 0n, max: 300n }),
  fc.bigInt({ min: 0n, max: 2n ** 90n }),
)
const amountsArbitrary = fc.tuple(...amountNames.map(() => size)).map((values): Amounts => {
  const amounts = noAmounts()
  amountNames.forEach((name, index) => (amounts[name] = values[index] ?? 0n))
  return amounts
})
const hoursArbitrary = fc
  .uniqueArray(fc.nat(743), { maxLength: 60 })
  .chain((indexes) =>
    fc.tuple(
      ...indexes
        .sort((a, b) => a - b)
        .map((index) => amountsArbitrary.map((amounts) => ({ hour: hourOf(index), amounts }))),
    ),
  )
const runs = { numRuns: effort({ small: 300, full: 20_000 }), seed }

t.test('hours that are packed in any number of steps are unpacked unchanged', (t) => {
  fc.assert(
    fc.property(hoursArbitrary, fc.nat(59), (hours, cut) => {
      const stepwise = hours.reduce<Uint8Array>((packed, hour) => appendHours(packed, month, [hour]), new Uint8Array())
      const twoSteps = appendHours(appendHours(new Uint8Array(), month, hours.slice(0, cut)), month, hours.slice(cut))
      const wanted: HourBucket[] = hours.map((hour) => ({ tenantId: 't', ...hour }))
      if (hours.length > 0) t.same(Buffer.from(stepwise), Buffer.from(twoSteps))
      t.same(unpackHours(stepwise, 't', month), wanted)
    }),
    { ...runs, numRuns: effort({ small: 60, full: 5_000 }) },
  )
  t.end()
})

t.test('an hour with the same stored bytes as the hour before takes one byte', (t) => {
  const amounts = { ...noAmounts(), documentByteSeconds: 3600n * 500_000_000n, fileByteSeconds: 3600n * 1_000_000_000n }
  const hours = Array.from({ length: 744 }, (_, index) => ({ hour: hourOf(index), amounts }))
  const packed = appendHours(new Uint8Array(), month, hours)
  t.ok(packed.length < 744 + 40, `${packed.length} bytes`)
  t.equal(unpackHours(packed, 't', month).length, 744)
  t.end()
})

t.test('an hour out of order, truncated bytes and an unknown version are rejected', (t) => {
  const amounts = { ...noAmounts(), requests: 1000n }
  const packed = appendHours(new Uint8Array(), month, [{ hour: hourOf(5), amounts }])
  for (const hour of [hourOf(5), hourOf(4), new Date(month.getTime() - 3_600_000), new Date(hourOf(6).getTime() + 1)]) {
    t.throws(() => appendHours(packed, month, [{ hour, amounts }]), /does not follow the packed hours/)
  }
  t.throws(() => unpackHours(packed.subarray(0, packed.length - 1), 't', month), /ends within a number/)
  t.throws(() => unpackHours(Uint8Array.of(9, 0), 't', month), /version 9/)
  t.throws(() => unpackCells(Uint8Array.of(9)), /version 9/)
  t.throws(() => unpackCells(Uint8Array.of(1, 120)), /unknown word 120/)
  t.end()
})

t.test('counts by group, method, status and latency are unpacked unchanged, also with unknown words', (t) => {
  const word = fc.constantFrom(
    '',
    'requests',
    'latency',
    'rest',
    'GET',
    '2xx',
    'inf',
    '250',
    'smörgås',
    'x'.repeat(200),
  )
  const cell = fc.record({ meter: word, group: word, method: word, statusClass: word, bucket: word })
  fc.assert(
    fc.property(fc.array(fc.tuple(cell, fc.bigInt({ min: 0n, max: 2n ** 70n })), { maxLength: 40 }), (counts) => {
      const cells: Cells = new Map()
      for (const [key, value] of counts) addToCell(cells, key, value)
      t.same(unpackCells(packCells(cells)), cells)
      t.equal(
        cellList(cells).reduce((sum, { value }) => sum + value, 0n),
        counts.reduce((sum, [, value]) => sum + value, 0n),
      )
    }),
    { ...runs, numRuns: effort({ small: 60, full: 5_000 }) },
  )
  t.end()
})

t.test('amounts survive conversion to text and back, and invalid text is rejected', (t) => {
  fc.assert(
    fc.property(amountsArbitrary, (amounts) => t.same(parseAmounts(amountsText(amounts)), amounts)),
    { ...runs, numRuns: 50 },
  )
  t.equal(amountsText(noAmounts()), '0,0,0,0,0,0,0,0,0,0')
  t.equal(amountsText({ ...noAmounts(), requests: 1n, realtimeMessages: 7n }), '1,0,0,0,0,0,0,0,0,0,7')
  for (const text of [
    '',
    '0',
    '0,0,0,0,0,0,0,0,0',
    '0,0,0,0,0,0,0,0,0,x',
    '0,0,0,0,0,0,0,0,0,0,0',
    '0,0,0,0,0,0,0,0,0,1.5',
    '0,0,0,0,0,0,0,0,0,0,1,1',
  ])
    t.throws(() => parseAmounts(text), /is not a line of amounts/)
  t.end()
})
