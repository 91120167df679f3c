// Hours of the ledger, all UTC. Pure.
import { hourOf } from '@tenantry/contract'

/** Returns the start of the UTC hour that contains an instant. */
export function startOfHour(at: Date): Date {
  return new Date(hourOf(at.getTime()))
}

/**
 * Reads an hour's start.
 * @returns undefined unless the text is ISO 8601 in UTC and starts an hour
 */
export function parseHour(text: string): Date | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:00:00(\.000)?Z$/.test(text)) return undefined
  const hour = new Date(text)
  return Number.isNaN(hour.getTime()) ? undefined : hour
}
