// Converts a month's hours into a series: closed hours with their links, open hours, and days. Pure.
import { hourMilliseconds } from '@tenantry/contract'
import { startOfMonth } from '../platform/months.ts'
import { hourLink } from './hash-chain.ts'
import { addAmounts, joinAmounts, noAmounts, type Amounts } from './hour-bucket.ts'
import type { MonthHours } from './month-usage.ts'
import type { UsagePart } from './usage.ts'

export function hourParts({ closed, open, previous }: MonthHours): UsagePart[] {
  let link = previous
  const parts = closed.map((bucket): UsagePart => {
    const before = link
    link = hourLink(before, bucket)
    return { start: bucket.hour, closed: true, amounts: bucket.amounts, link: { previous: before, hash: link } }
  })
  // New counts of a closed hour soon become a correction, so they are left out.
  const isClosed = new Set(closed.map(({ hour }) => hour.getTime()))
  return [
    ...parts,
    ...open
      .filter(({ hour }) => !isClosed.has(hour.getTime()))
      .map(({ hour, amounts }) => ({ start: hour, closed: false, amounts })),
  ].sort((a, b) => a.start.getTime() - b.start.getTime())
}

/** Returns the days with any usage. */
export function dayParts({ closed, open, corrections, closedAt }: MonthHours): UsagePart[] {
  const hours = new Map<number, Amounts>()
  const own = corrections.filter(({ hour, billedMonth }) => startOfMonth(hour).getTime() === billedMonth.getTime())
  for (const { hour, amounts } of [...closed, ...open, ...own])
    hours.set(hour.getTime(), addAmounts(hours.get(hour.getTime()) ?? noAmounts(), amounts))
  const days = new Map<number, Amounts>()
  for (const [hour, amounts] of hours) {
    const day = hour - (hour % (24 * hourMilliseconds))
    days.set(day, joinAmounts(days.get(day) ?? noAmounts(), amounts))
  }
  return [...days]
    .sort(([a], [b]) => a - b)
    .map(([day, amounts]) => ({ start: new Date(day), closed: closedAt !== undefined, amounts }))
}
