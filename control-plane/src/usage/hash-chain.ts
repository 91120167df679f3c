// The chain over a tenant's closed hours, and that over its corrections: each link's hash covers the link before it,
// so that an hour that was changed, left out or put in shows. Pure.
import { hash as digest } from 'node:crypto'
import { amountsText } from './amounts-text.ts'
import type { Correction } from './closed-usage.ts'
import type { HourBucket } from './hour-bucket.ts'

/** The hash before a tenant's first link. */
export const chainStart = '0'.repeat(64)

/**
 * SHA-256, in hexadecimal, of the texts below joined by line feeds:
 * the hash before, `hour`, tenant id, start of the hour (ISO 8601 with milliseconds), the amounts as `amountsText` writes them.
 */
export function hourLink(previous: string, { tenantId, hour, amounts }: HourBucket): string {
  return digest('sha256', [previous, 'hour', tenantId, hour.toISOString(), amountsText(amounts)].join('\n'))
}

/**
 * SHA-256, in hexadecimal, of the texts below joined by line feeds:
 * the hash before, `correction`, tenant id, number, start of the hour, first instant of the month it is billed with, the
 * amounts; times and amounts are written as in `hourLink`.
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

/** Links hours to a tenant's chain. @returns its hash after the hours, which are in order */
export function chainOf(previous: string, hours: readonly HourBucket[]): string {
  return hours.reduce(hourLink, previous)
}
