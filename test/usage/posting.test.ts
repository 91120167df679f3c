// Counts go into closed hours while none after them is closed, and into corrections else: each exactly once.
import fc from 'fast-check'
import t from 'tap'
import { postCounts, type Count, type OpenMonth, type TenantPosting } from '#control-plane/usage/post-counts.ts'
import { chainOf, chainStart, correctionLink } from '#control-plane/usage/hash-chain.ts'
import { addAmounts, joinAmounts, noAmounts, type Amounts } from '#control-plane/usage/hour-bucket.ts'
import { nextMonth, startOfMonth } from '#control-plane/platform/months.ts'
import type { Correction } from '#control-plane/usage/closed-usage.ts'
import { unpackHours } from '#control-plane/usage/packed-hours.ts'
import { effort, seed } from '#test/support/effort.ts'

const tenantId = 't_0123456789abcdef0123'
const at = new Date('2026-06-10T00:00:00Z')
const empty: TenantPosting = {
  tenantId,
  hash: chainStart,
  correctionsHash: chainStart,
  corrections: 0,
  lastHour: undefined,
  closedUntil: undefined,
  months: [],
  corrected: [],
}
const count = (hour: string, meter: string, value: bigint): Count => ({
  hour: new Date(hour),
  key: { meter, group: meter === 'requests' ? 'rest' : '', method: '', statusClass: '', bucket: '' },
  value,
})

/** A ledger in memory: what a store does with what was booked. */
class Records {
  book = empty
  readonly months = new Map<number, OpenMonth>()
  readonly corrections: Correction[] = []

  take(counts: readonly Count[]): void {
    const open = [...this.months.values()].filter(
      ({ month }) => this.book.closedUntil === undefined || month >= this.book.closedUntil,
    )
    const { book, months, corrections } = postCounts({ ...this.book, months: open }, counts, at)
    this.book = book
    for (const month of months) this.months.set(month.month.getTime(), month)
    this.corrections.push(...corrections)
  }

  hours(month: string) {
    const start = new Date(month)
    return unpackHours(this.months.get(start.getTime())?.hours ?? new Uint8Array(), tenantId, start)
  }
}

t.test('a late count becomes a correction, with the chain of the hours as it was', (t) => {
  const books = new Records()
  books.take([count('2026-05-01T10:00:00Z', 'requests', 5n), count('2026-05-01T12:00:00Z', 'requests', 7n)])
  const { hash } = books.book
  books.take([count('2026-05-01T11:00:00Z', 'requests', 2n), count('2026-05-01T10:00:00Z', 'egress_bytes', 30n)])
  t.equal(books.book.hash, hash)
  t.match(books.corrections, [
    {
      number: 1,
      hour: new Date('2026-05-01T10:00:00Z'),
      amounts: { requests: 0n, egressBytes: 30n },
      billedMonth: new Date('2026-05-01'),
      previous: chainStart,
    },
    {
      number: 2,
      hour: new Date('2026-05-01T11:00:00Z'),
      amounts: { requests: 2n },
      billedMonth: new Date('2026-05-01'),
    },
  ])
  t.match(books.months.get(Date.parse('2026-05-01'))?.totals, { requests: 14n, egressBytes: 30n })
  t.equal(chainOf(chainStart, books.hours('2026-05-01')), hash)
  t.end()
})

t.test(
  'what comes for a closed month is billed with the first open one, and changes nothing of the closed one',
  (t) => {
    const books = new Records()
    books.take([count('2026-04-30T23:00:00Z', 'requests', 5n), count('2026-05-01T00:00:00Z', 'requests', 1n)])
    books.book = { ...books.book, closedUntil: new Date('2026-05-01') }
    const closed = books.months.get(Date.parse('2026-04-01'))
    books.take([count('2026-04-03T08:00:00Z', 'requests', 9n), count('2026-04-03T08:00:00Z', 'refused_requests', 1n)])
    t.match(books.corrections, [
      { billedMonth: new Date('2026-05-01'), hour: new Date('2026-04-03T08:00:00Z'), amounts: { requests: 9n } },
    ])
    t.equal(books.months.get(Date.parse('2026-04-01')), closed)
    t.match(books.months.get(Date.parse('2026-05-01'))?.totals, { requests: 1n }, 'the next month used no more for it')
    t.end()
  },
)

t.test("the connections of an hour are all its gateways' together; of a month, the greatest hour's", (t) => {
  const books = new Records()
  books.take([
    count('2026-05-01T10:00:00Z', 'connections_peak', 5n),
    count('2026-05-01T12:00:00Z', 'connections_peak', 6n),
  ])
  const peak = () => books.months.get(Date.parse('2026-05-01'))?.totals.connectionsPeak
  t.equal(peak(), 6n)
  books.take([count('2026-05-01T10:00:00Z', 'connections_peak', 1n)])
  t.equal(peak(), 6n)
  books.take([count('2026-05-01T10:00:00Z', 'connections_peak', 1n)])
  t.equal(peak(), 7n)
  t.end()
})

t.test('what costs nothing is kept broken down, and is no link of the chain', (t) => {
  const books = new Records()
  books.take([count('2026-05-01T10:00:00Z', 'latency', 3n), count('2026-05-01T10:00:00Z', 'refused_requests', 2n)])
  t.equal(books.book.hash, chainStart)
  t.same(books.hours('2026-05-01'), [])
  t.equal(books.months.get(Date.parse('2026-05-01'))?.cells.size, 2)
  books.take([count('2026-04-01T10:00:00Z', 'requests', 1n), count('2026-05-01T10:00:00Z', 'requests', 1n)])
  const [april, may] = [books.months.get(Date.parse('2026-04-01')), books.months.get(Date.parse('2026-05-01'))]
  t.equal(may?.previous, april?.hash, 'the months follow each other in the chain')
  t.equal(chainOf(may?.previous ?? '', books.hours('2026-05-01')), may?.hash)
  t.end()
})

t.test(
  'hours and corrections hold each count once, in whole chains, whatever the order and the closing of months',
  (t) => {
    const hours = fc
      .integer({ min: 0, max: 24 * 90 })
      .map((index) => new Date(Date.parse('2026-03-01T00:00:00Z') + index * 3_600_000))
    const counts = fc.record({
      hour: hours,
      meter: fc.constantFrom('requests', 'egress_bytes', 'connections_peak', 'latency', 'file_byte_seconds'),
      value: fc.bigInt({ min: 1n, max: 2n ** 60n }),
    })
    const step = fc.record({ counts: fc.array(counts, { maxLength: 12 }), closes: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        const books = new Records()
        const wanted = new Map<number, Amounts>()
        for (const { counts: some, closes } of steps) {
          books.take(some.map(({ hour, meter, value }) => count(hour.toISOString(), meter, value)))
          for (const { hour, meter, value } of some) {
            const names = {
              requests: 'requests',
              egress_bytes: 'egressBytes',
              connections_peak: 'connectionsPeak',
              file_byte_seconds: 'fileByteSeconds',
              latency: undefined,
            } as const
            const name = names[meter]
            if (name !== undefined)
              wanted.set(
                hour.getTime(),
                addAmounts(wanted.get(hour.getTime()) ?? noAmounts(), { ...noAmounts(), [name]: value }),
              )
          }
          const last = books.book.lastHour
          if (closes && last !== undefined) books.book = { ...books.book, closedUntil: startOfMonth(last) }
        }
        const months = [...books.months.values()].sort((a, b) => a.month.getTime() - b.month.getTime())
        const closed = months.flatMap(({ month }) => books.hours(month.toISOString()))
        const found = new Map<number, Amounts>()
        for (const { hour, amounts } of [...closed, ...books.corrections])
          found.set(hour.getTime(), addAmounts(found.get(hour.getTime()) ?? noAmounts(), amounts))
        t.same(new Map([...found].sort(([a], [b]) => a - b)), new Map([...wanted].sort(([a], [b]) => a - b)))
        t.equal(chainOf(chainStart, closed), books.book.hash)
        let link = chainStart
        for (const correction of books.corrections) {
          t.equal(correction.previous, link)
          link = correctionLink(link, correction)
          t.equal(correction.hash, link)
        }
        for (const { month, totals } of months) {
          const own = books.corrections.filter(
            ({ hour, billedMonth }) =>
              hour >= month && hour < nextMonth(month) && billedMonth.getTime() === month.getTime(),
          )
          const byHour = new Map<number, Amounts>()
          for (const { hour, amounts } of [...books.hours(month.toISOString()), ...own])
            byHour.set(hour.getTime(), addAmounts(byHour.get(hour.getTime()) ?? noAmounts(), amounts))
          t.same(totals, [...byHour.values()].reduce(joinAmounts, noAmounts()), `totals of ${month.toISOString()}`)
        }
      }),
      { numRuns: effort({ small: 150, full: 10_000 }), seed },
    )
    t.end()
  },
)
