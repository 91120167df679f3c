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

/** The part of the ledger that billing reads. Every read checks the stored data against its chain of hashes. */
export interface ClosedUsage {
  /**
   * Reads a tenant's month.
   * @param month its first instant, UTC
   * @returns an empty open month where the ledger has nothing
   * @throws Error when the stored month does not match its chain
   */
  month(tenantId: string, month: Date): Promise<ClosedMonth>
  /**
   * Reads the month of many tenants, all at one instant. Each tenant has an entry, whose errors show when it is read.
   */
  months(tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, StoredMonth>>
  /**
   * Returns the end of a tenant's closed hours, as an hour's start. Reads after this call include all of them.
   * @param settled hours from this one on are not to be closed yet
   */
  closedUntil(tenantId: string, settled: Date): Promise<Date>
  /** Returns the tenants whose month is closed, deleted ones too, in the order of their ids. */
  closedTenants(month: Date, page: { after: string | undefined; limit: number }): Promise<string[]>
}
