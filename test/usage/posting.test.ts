// Each count is posted exactly once: into its hour while no later hour is closed, otherwise into a correction.
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

/** A ledger in memory, which stores posted counts as the real store does. */
class MemoryLedger {
  posting = empty
  readonly months = new Map<number, OpenMonth>()
  readonly corrections: Correction[] = []

  post(counts: readonly Count[]): void {
    const open = [...this.months.values()].filter(
      ({ month }) => this.posting.closedUntil === undefined || month >= this.posting.closedUntil,
    )
    const { posting, months, corrections } = postCounts({ ...this.posting, months: open }, counts, at)
    this.posting = posting
    for (const month of months) this.months.set(month.month.getTime(), month)
    this.corrections.push(...corrections)
  }

  hours(month: string) {
    const start = new Date(month)
    return unpackHours(this.months.get(start.getTime())?.hours ?? new Uint8Array(), tenantId, start)
  }
}

t.test('a late count becomes a correction, and the chain of the hours is unchanged', (t) => {
  const ledger = new MemoryLedger()
  ledger.post([count('2026-05-01T10:00:00Z', 'requests', 5n), count('2026-05-01T12:00:00Z', 'requests', 7n)])
  const { hash } = ledger.posting
  ledger.post([count('2026-05-01T11:00:00Z', 'requests', 2n), count('2026-05-01T10:00:00Z', 'egress_bytes', 30n)])
  t.equal(ledger.posting.hash, hash)
  t.match(ledger.corrections, [
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
  t.match(ledger.months.get(Date.parse('2026-05-01'))?.totals, { requests: 14n, egressBytes: 30n })
  t.equal(chainOf(chainStart, ledger.hours('2026-05-01')), hash)
  t.end()
})

t.test('a count for a closed month is billed in the first open month, and the closed month is unchanged', (t) => {
  const ledger = new MemoryLedger()
  ledger.post([count('2026-04-30T23:00:00Z', 'requests', 5n), count('2026-05-01T00:00:00Z', 'requests', 1n)])
  ledger.posting = { ...ledger.posting, closedUntil: new Date('2026-05-01') }
  const closed = ledger.months.get(Date.parse('2026-04-01'))
  ledger.post([count('2026-04-03T08:00:00Z', 'requests', 9n), count('2026-04-03T08:00:00Z', 'refused_requests', 1n)])
  t.match(ledger.corrections, [
    { billedMonth: new Date('2026-05-01'), hour: new Date('2026-04-03T08:00:00Z'), amounts: { requests: 9n } },
  ])
  t.equal(ledger.months.get(Date.parse('2026-04-01')), closed)
  t.match(
    ledger.months.get(Date.parse('2026-05-01'))?.totals,
    { requests: 1n },
    'the totals of the next month do not include it',
  )
  t.end()
})

t.test("an hour's peak of connections is the sum over its gateways, a month's peak that of its greatest hour", (t) => {
  const ledger = new MemoryLedger()
  ledger.post([
    count('2026-05-01T10:00:00Z', 'connections_peak', 5n),
    count('2026-05-01T12:00:00Z', 'connections_peak', 6n),
  ])
  const peak = () => ledger.months.get(Date.parse('2026-05-01'))?.totals.connectionsPeak
  t.equal(peak(), 6n)
  ledger.post([count('2026-05-01T10:00:00Z', 'connections_peak', 1n)])
  t.equal(peak(), 6n)
  ledger.post([count('2026-05-01T10:00:00Z', 'connections_peak', 1n)])
  t.equal(peak(), 7n)
  t.end()
})

t.test('counts that are not billed are stored by cell, and are not part of the chain', (t) => {
  const ledger = new MemoryLedger()
  ledger.post([count('2026-05-01T10:00:00Z', 'latency', 3n), count('2026-05-01T10:00:00Z', 'refused_requests', 2n)])
  t.equal(ledger.posting.hash, chainStart)
  t.same(ledger.hours('2026-05-01'), [])
  t.equal(ledger.months.get(Date.parse('2026-05-01'))?.cells.size, 2)
  ledger.post([count('2026-04-01T10:00:00Z', 'requests', 1n), count('2026-05-01T10:00:00Z', 'requests', 1n)])
  const [april, may] = [ledger.months.get(Date.parse('2026-04-01')), ledger.months.get(Date.parse('2026-05-01'))]
  t.equal(may?.previous, april?.hash, 'each month continues the chain of the month before')
  t.equal(chainOf(may?.previous ?? '', ledger.hours('2026-05-01')), may?.hash)
  t.end()
})

t.test('hours and corrections hold each count once, in valid chains, in any order of counts and closings', (t) => {
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
      const ledger = new MemoryLedger()
      const wanted = new Map<number, Amounts>()
      for (const { counts: some, closes } of steps) {
        ledger.post(some.map(({ hour, meter, value }) => count(hour.toISOString(), meter, value)))
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
        const last = ledger.posting.lastHour
        if (closes && last !== undefined) ledger.posting = { ...ledger.posting, closedUntil: startOfMonth(last) }
      }
      const months = [...ledger.months.values()].sort((a, b) => a.month.getTime() - b.month.getTime())
      const closed = months.flatMap(({ month }) => ledger.hours(month.toISOString()))
      const found = new Map<number, Amounts>()
      for (const { hour, amounts } of [...closed, ...ledger.corrections])
        found.set(hour.getTime(), addAmounts(found.get(hour.getTime()) ?? noAmounts(), amounts))
      t.same(new Map([...found].sort(([a], [b]) => a - b)), new Map([...wanted].sort(([a], [b]) => a - b)))
      t.equal(chainOf(chainStart, closed), ledger.posting.hash)
      let link = chainStart
      for (const correction of ledger.corrections) {
        t.equal(correction.previous, link)
        link = correctionLink(link, correction)
        t.equal(correction.hash, link)
      }
      for (const { month, totals } of months) {
        const own = ledger.corrections.filter(
          ({ hour, billedMonth }) =>
            hour >= month && hour < nextMonth(month) && billedMonth.getTime() === month.getTime(),
        )
        const byHour = new Map<number, Amounts>()
        for (const { hour, amounts } of [...ledger.hours(month.toISOString()), ...own])
          byHour.set(hour.getTime(), addAmounts(byHour.get(hour.getTime()) ?? noAmounts(), amounts))
        t.same(totals, [...byHour.values()].reduce(joinAmounts, noAmounts()), `totals of ${month.toISOString()}`)
      }
    }),
    { numRuns: effort({ small: 150, full: 10_000 }), seed },
  )
  t.end()
})
