// Simulates a tenant's year from a seed: hours of usage, plan changes, suspensions, and late counts.
import type { AdjustmentFact } from '#control-plane/billing/adjustment.ts'
import { chainOf, chainStart, correctionLink } from '#control-plane/usage/hash-chain.ts'
import type { ClosedMonth, Correction } from '#control-plane/usage/closed-usage.ts'
import { noAmounts, type Amounts, type HourBucket } from '#control-plane/usage/hour-bucket.ts'
import type { PlanPeriod } from '#control-plane/plans/plan-period.ts'

export type Random = () => number

export interface SimulatedYear {
  tenantId: string
  periods: PlanPeriod[]
  months: ClosedMonth[]
  /** Manual credits and charges, each with the month of the first invoice created after it. */
  adjustments: (AdjustmentFact & { billedMonth: Date })[]
}

const hourMilliseconds = 3_600_000
const plans = ['Free', 'Pro', 'Enterprise'] as const
export const yearStart = new Date('2026-01-01T00:00:00Z')
const yearEnd = new Date('2027-01-01T00:00:00Z')
const monthOf = (at: Date) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))

export function simulateYear(random: Random, tenantId: string): SimulatedYear {
  const randomDate = (from: Date, to: Date) =>
    new Date(from.getTime() + Math.floor(random() * (to.getTime() - from.getTime())))
  const created = randomDate(yearStart, new Date('2026-04-01T00:00:00Z'))
  const gone = random() < 0.3 ? randomDate(new Date('2026-10-01T00:00:00Z'), yearEnd) : yearEnd
  const periods = planPeriods(random, created, gone, randomDate)
  const suspensions = Array.from({ length: 3 }, () => randomDate(created, gone)).map((from) => ({
    from,
    to: new Date(from.getTime() + random() * 10 * 86_400_000),
  }))
  const suspended = (hour: Date) => suspensions.some(({ from, to }) => from <= hour && hour < to)

  const hours: HourBucket[] = []
  const firstHour = Math.floor(created.getTime() / hourMilliseconds) * hourMilliseconds
  let stored = 0n
  for (let at = firstHour; at < gone.getTime(); at += hourMilliseconds) {
    const hour = new Date(at)
    stored = stored < 0n ? 0n : stored + BigInt(Math.floor((random() - 0.45) * 1e8))
    hours.push({ tenantId, hour, amounts: suspended(hour) ? storageOnly(stored) : used(random, stored) })
  }
  const months = closedMonths(tenantId, hours, lateCounts(random, tenantId, hours))
  return { tenantId, periods, months, adjustments: manualAdjustments(random, randomDate, created) }
}

function planPeriods(
  random: Random,
  created: Date,
  gone: Date,
  randomDate: (from: Date, to: Date) => Date,
): PlanPeriod[] {
  const changes = Array.from({ length: 8 }, () => randomDate(created, gone)).sort((a, b) => a.getTime() - b.getTime())
  // Adds two changes in one hour, two in one second, and one at the first instant of a month.
  const again = changes[2]
  if (again !== undefined) changes.push(new Date(again.getTime() + 400), new Date(again.getTime() + 900_000))
  const starts = [created, ...changes, new Date('2026-07-01T00:00:00Z')]
    .filter((at) => at >= created && at < gone)
    .sort((a, b) => a.getTime() - b.getTime())
  return starts
    .map((since, index) => {
      const plan = plans[Math.floor(random() * plans.length)] ?? 'Free'
      const weaker = plan !== 'Free' && random() < 0.4 ? { weakerIsolation: 'schema-per-tenant' } : {}
      return { plan, ...weaker, since, until: starts[index + 1] ?? gone }
    })
    .filter(({ since, until }) => since < until)
}

function storageOnly(stored: bigint): Amounts {
  return { ...noAmounts(), documentByteSeconds: stored * 3600n, fileByteSeconds: stored * 12_345n }
}

function used(random: Random, stored: bigint): Amounts {
  const upTo = (max: number) => BigInt(Math.floor(random() ** 4 * max))
  return {
    ...storageOnly(stored),
    requests: upTo(300_000),
    egressBytes: upTo(3e9),
    connectionsPeak: upTo(100),
    connectionMilliseconds: upTo(100 * hourMilliseconds),
    functionInvocations: upTo(20_000),
    functionMilliseconds: upTo(4e6),
    functionCpuMicroseconds: upTo(4e9),
    functionMemoryKibMilliseconds: upTo(1e12),
    realtimeMessages: upTo(1e6),
  }
}

/** Returns corrections that are billed with the month of their hour, or one or two months later. */
function lateCounts(random: Random, tenantId: string, hours: readonly HourBucket[]): Correction[] {
  let previous = chainStart
  return Array.from({ length: 40 }, () => {
    const hour = hours[Math.floor(random() * hours.length)]?.hour ?? yearStart
    const month = monthOf(hour)
    const billed = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + Math.floor(random() * 3), 1))
    return { hour, billedMonth: billed < yearEnd ? billed : month }
  })
    .sort((a, b) => a.billedMonth.getTime() - b.billedMonth.getTime())
    .map(({ hour, billedMonth }, index) => {
      const amounts = {
        ...noAmounts(),
        requests: BigInt(Math.floor(random() * 5e5)),
        egressBytes: BigInt(Math.floor(random() * 1e9)),
      }
      const link = { tenantId, number: index + 1, hour, billedMonth, amounts }
      const correction = { ...link, recordedAt: billedMonth, previous, hash: correctionLink(previous, link) }
      previous = correction.hash
      return correction
    })
}

/** Returns adjustments from a millionth to more than a month's cost. Invoices are created two hours after a month's end. */
function manualAdjustments(
  random: Random,
  randomDate: (from: Date, to: Date) => Date,
  created: Date,
): SimulatedYear['adjustments'] {
  return Array.from({ length: 20 }, () => randomDate(created, new Date(yearEnd.getTime() + 2 * hourMilliseconds)))
    .sort((a, b) => a.getTime() - b.getTime())
    .map((createdAt, index) => {
      const size = 1n + BigInt(Math.floor(random() ** 6 * 5e9))
      const billedMonth = monthOf(new Date(createdAt.getTime() - 2 * hourMilliseconds))
      const words =
        index % 3 === 0 ? 'moved from another host, with all that was to be done for it, '.repeat(3).trim() : 'goodwill'
      return {
        id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
        description: `${words} ${index}`,
        amount: random() < 0.6 ? -size : size,
        createdAt,
        billedMonth,
      }
    })
    .filter(({ billedMonth }) => billedMonth >= monthOf(created))
}

function closedMonths(
  tenantId: string,
  hours: readonly HourBucket[],
  corrections: readonly Correction[],
): ClosedMonth[] {
  let hash = chainStart
  return Array.from({ length: 12 }, (_, index) => {
    const month = new Date(Date.UTC(2026, index, 1))
    const own = hours.filter(({ hour }) => monthOf(hour).getTime() === month.getTime())
    const previous = hash
    hash = chainOf(previous, own)
    return {
      tenantId,
      month,
      hours: own,
      previous,
      hash,
      closedAt: new Date(Date.UTC(2026, index + 1, 1, 2)),
      corrections: corrections.filter(({ billedMonth }) => billedMonth.getTime() === month.getTime()),
    }
  })
}
