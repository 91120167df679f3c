// Months, as their first instant and as the text `YYYY-MM`; always UTC.

/** Formats a month as `YYYY-MM`. */
export function monthText(month: Date): string {
  return month.toISOString().slice(0, 7)
}

/** Parses a month. @returns undefined for an invalid one */
export function parseMonth(text: string): Date | undefined {
  const match = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text)
  if (match === null || Number(match[1]) < 1970) return undefined
  return new Date(Date.UTC(Number(match[1]), Number(match[2]) - 1, 1))
}

/** Returns the first instant of the month after a date's. */
export function nextMonth(month: Date): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
}

/** Returns the first instant of the month before a date's. */
export function monthBefore(month: Date): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() - 1, 1))
}

/** Returns the first instant of a moment's month. */
export function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
}

/** Returns the length of a month in seconds. */
export function monthSeconds(month: Date): bigint {
  return BigInt((nextMonth(month).getTime() - month.getTime()) / 1000)
}
