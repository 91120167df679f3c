// The part of the ledger that billing reads: a tenant's closed hours, and the corrections that are billed with a month.
import type { Amounts, HourBucket } from './hour-bucket.ts'

/** Usage that arrived for an hour after it was closed. It is billed once, with `billedMonth`. */
export interface Correction {
  tenantId: string
  /** The number of the correction; a tenant's corrections count up from 1. */
  number: number
  /** The start of the hour of the usage, UTC. It is in `billedMonth` or an earlier month. */
  hour: Date
  /** The amounts to add to the hour. */
  amounts: Amounts
  /**
   * The first instant of the month whose invoice has the correction: the hour's own month while that is open, else the
   * first open one.
   */
  billedMonth: Date
  recordedAt: Date
  /**
   * The hashes of the tenant's chain of corrections before and after this one (see `hash-chain.ts`), in hexadecimal.
   */
  previous: string
  hash: string
}

export interface ClosedMonth {
  tenantId: string
  /** The month's first instant, UTC. */
  month: Date
  /** The closed hours with any usage, in order. */
  hours: HourBucket[]
  /** The corrections that are billed with this month, by number. */
  corrections: Correction[]
  /**
   * The hash of the chain before the month's first hour (see `hash-chain.ts`), in hexadecimal. `hash` is the one after
   * its last.
   */
  previous: string
  hash: string
  /** The time since which `hours` and `corrections` can't change any more; undefined while the month is open. */
  closedAt: Date | undefined
}

/** A tenant's month as it is stored, which is small until it is read. */
export interface StoredMonth {
  /** The time at which the month was closed, as in `ClosedMonth`. */
  closedAt: Date | undefined
  /** Whether there is any closed hour. */
  hasHours: boolean
  /** The starts of the hours that the corrections concern. */
  corrected: readonly Date[]
  /**
   * Reads the month.
   * @throws Error when the stored month does not match its chain
   */
  read(): ClosedMonth
}
