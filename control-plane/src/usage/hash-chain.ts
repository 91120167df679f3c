// The hash chains over a tenant's closed hours and over its corrections. Each link's hash covers the link before it, so
// that a changed, missing or inserted hour is detected. Pure.
import { hash as digest } from 'node:crypto'
import { amountsText } from './amounts-text.ts'
import type { Correction } from './closed-usage.ts'
import type { HourBucket } from './hour-bucket.ts'

/** The hash before a tenant's first link. */
export const chainStart = '0'.repeat(64)

/**
 * Returns an hour's hash: SHA-256, in hexadecimal, of these texts joined by line feeds: the previous hash, `hour`,
 * tenant id, start of the hour (ISO 8601 with milliseconds), and the amounts as `amountsText` writes them.
 */
export function hourLink(previous: string, { tenantId, hour, amounts }: HourBucket): string {
  return digest('sha256', [previous, 'hour', tenantId, hour.toISOString(), amountsText(amounts)].join('\n'))
}

/**
 * Returns a correction's hash: SHA-256, in hexadecimal, of these texts joined by line feeds: the previous hash,
 * `correction`, tenant id, number, start of the hour, first instant of the month that bills it, and the amounts. Times
 * and amounts are as in `hourLink`.
 */
export function correctionLink(
  previous: string,
  correction: Omit<Correction, 'recordedAt' | 'previous' | 'hash'>,
): string {
  const { tenantId, number, hour, billedMonth, amounts } = correction
  return digest(
    'sha256',
    [
      previous,
      'correction',
      tenantId,
      String(number),
      hour.toISOString(),
      billedMonth.toISOString(),
      amountsText(amounts),
    ].join('\n'),
  )
}

/**
 * Links hours, which are in order, to a tenant's chain.
 * @returns the hash after them
 */
export function chainOf(previous: string, hours: readonly HourBucket[]): string {
  return hours.reduce(hourLink, previous)
}
