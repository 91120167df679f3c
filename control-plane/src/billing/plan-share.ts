// Divides a month and an hour's usage among the plans that a tenant had.
import type { PlanPeriod } from '../plans/index.ts'
import { monthSeconds, nextMonth } from '../platform/months.ts'

/** A plan's period inside the month, in whole seconds since 1970. */
export interface PlanSpan {
  plan: string
  weakerIsolation: string | undefined
  from: number
  to: number
}

const second = (at: Date) => Math.floor(at.getTime() / 1000)

/** Returns the parts of the periods in the month, in order. An instant counts from the second that contains it. */
export function spansOf(month: Date, periods: readonly PlanPeriod[]): PlanSpan[] {
  const [start, end] = [second(month), second(nextMonth(month))]
  const spans = periods
    .map(({ plan, weakerIsolation, since, until }) => ({
      plan,
      weakerIsolation,
      from: Math.max(start, second(since)),
      to: Math.min(end, second(until)),
    }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from)
  for (const [index, span] of spans.entries()) {
    const before = spans[index - 1]
    if (before !== undefined && before.to > span.from)
      throw new Error(`The plans ${before.plan} and ${span.plan} overlap.`)
  }
  return spans
}

/** Adds up the seconds of each plan. */
export function secondsByPlan(spans: readonly Pick<PlanSpan, 'plan' | 'from' | 'to'>[]): Map<string, bigint> {
  const seconds = new Map<string, bigint>()
  for (const { plan, from, to } of spans) seconds.set(plan, (seconds.get(plan) ?? 0n) + BigInt(to - from))
  return seconds
}

/** One plan's share of an hour. */
export interface HourShare {
  plan: string | undefined
  seconds: bigint
}

/**
 * Divides an hour among the plans by the seconds of each. Usage while there was no plan (the last bytes after a
 * deletion) belongs to the plan before, or else to the one after. Never empty.
 */
export function sharesOf(spans: readonly PlanSpan[], hour: Date): HourShare[] {
  const start = second(hour)
  const held = spans
    .map(({ plan, from, to }) => ({ plan, seconds: BigInt(Math.min(to, start + 3600) - Math.max(from, start)) }))
    .filter(({ seconds }) => seconds > 0n)
  if (held.length > 0) return held
  const nearest = spans.findLast(({ to }) => to <= start) ?? spans[0]
  return [{ plan: nearest?.plan, seconds: 3600n }]
}

/** Divides an hour's amount by the shares' seconds. The parts add up to the whole. */
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

/** Returns the part of a month's amount for the seconds of a plan, rounded down. */
export function shareOf(whole: bigint, seconds: bigint, month: Date): bigint {
  return (whole * seconds) / monthSeconds(month)
}
