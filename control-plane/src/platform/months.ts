// A month as its first instant and as the text `YYYY-MM`; always UTC.

/** A month as `YYYY-MM`. */
export function monthText(month: Date): string {
  return month.toISOString().slice(0, 7)
}

/** @returns undefined for what is no month */
export function parseMonth(text: string): Date | undefined {
  const match = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text)
  if (match === null || Number(match[1]) < 1970) return undefined
  return new Date(Date.UTC(Number(match[1]), Number(match[2]) - 1, 1))
}

/** First instant of the month after that of the date. */
export function nextMonth(month: Date): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
}

/** First instant of the month before that of the date. */
export function monthBefore(month: Date): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() - 1, 1))
}

/** First instant of the month in which a moment lies. */
export function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
}

/** Seconds that a month lasts. */
export function monthSeconds(month: Date): bigint {
  return BigInt((nextMonth(month).getTime() - month.getTime()) / 1000)
}
