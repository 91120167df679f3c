// Hours and months of the ledger, all UTC. Pure.

export const hourMilliseconds = 3_600_000

export function startOfHour(at: Date): Date {
  return new Date(Math.floor(at.getTime() / hourMilliseconds) * hourMilliseconds)
}

export function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
}

export function nextMonth(month: Date): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
}

/** `YYYY-MM`. */
export function monthName(month: Date): string {
  return month.toISOString().slice(0, 7)
}

/** @returns undefined unless the text is ISO 8601 in UTC and starts an hour */
export function parseHour(text: string): Date | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:00:00(\.000)?Z$/.test(text)) return undefined
  const hour = new Date(text)
  return Number.isNaN(hour.getTime()) ? undefined : hour
}
