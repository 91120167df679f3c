// Which plan a tenant had when: the seconds of each, and an hour's usage divided among them.
import type { PlanPeriod } from '../plans/index.ts'
import { monthSeconds, nextMonth } from '../platform/months.ts'

/** A period in whole seconds since 1970, inside the month. */
export interface Chunk {
  plan: string
  weakerIsolation: string | undefined
  from: number
  to: number
}

const second = (at: Date) => Math.floor(at.getTime() / 1000)

/** The periods' parts in the month, in order; instants count from the second that they are in. */
export function chunksOf(month: Date, periods: readonly PlanPeriod[]): Chunk[] {
  const [start, end] = [second(month), second(nextMonth(month))]
  const chunks = periods
    .map(({ plan, weakerIsolation, since, until }) => ({
      plan,
      weakerIsolation,
      from: Math.max(start, second(since)),
      to: Math.min(end, second(until)),
    }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from)
  for (const [index, chunk] of chunks.entries()) {
    const before = chunks[index - 1]
    if (before !== undefined && before.to > chunk.from)
      throw new Error(`the plans ${before.plan} and ${chunk.plan} hold at the same time`)
  }
  return chunks
}

/** Seconds of each plan. */
export function secondsByPlan(chunks: readonly Pick<Chunk, 'plan' | 'from' | 'to'>[]): Map<string, bigint> {
  const seconds = new Map<string, bigint>()
  for (const { plan, from, to } of chunks) seconds.set(plan, (seconds.get(plan) ?? 0n) + BigInt(to - from))
  return seconds
}

/** One plan's part of an hour. */
export interface HourShare {
  plan: string | undefined
  seconds: bigint
}

/**
 * Who an hour's usage belongs to: the plans by the seconds that each held in it. What was used when no plan held (the
 * last bytes after a deletion) belongs to the plan before, or else to the one after. Never empty.
 */
export function sharesOf(chunks: readonly Chunk[], hour: Date): HourShare[] {
  const start = second(hour)
  const held = chunks
    .map(({ plan, from, to }) => ({ plan, seconds: BigInt(Math.min(to, start + 3600) - Math.max(from, start)) }))
    .filter(({ seconds }) => seconds > 0n)
  if (held.length > 0) return held
  const nearest = chunks.findLast(({ to }) => to <= start) ?? chunks[0]
  return [{ plan: nearest?.plan, seconds: 3600n }]
}

/** An hour's amount divided by the shares' seconds; the parts add up to the whole. */
export function divideAmount(
  shares: readonly HourShare[],
  amount: bigint,
): { plan: string | undefined; amount: bigint }[] {
  const total = shares.reduce((sum, { seconds }) => sum + seconds, 0n)
  let [passed, given] = [0n, 0n]
  return shares.map(({ plan, seconds }) => {
    passed += seconds
    const part = (amount * passed) / total - given
    given += part
    return { plan, amount: part }
  })
}

/** A month's whole amount cut down to the seconds that a plan held, rounded down. */
export function shareOf(whole: bigint, seconds: bigint, month: Date): bigint {
  return (whole * seconds) / monthSeconds(month)
}
