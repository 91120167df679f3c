// What billing reads of the ledger: a tenant's closed hours and the corrections that are billed with a month.
import type { Amounts, HourBucket } from './hour-bucket.ts'

/** What came for an hour after it was closed. It is billed once, with `billedMonth`. */
export interface Correction {
  tenantId: string
  /** Counts up from 1 with each correction of the tenant. */
  number: number
  /** Start of the hour in which it was used, UTC; in an earlier month than `billedMonth`, or in the same. */
  hour: Date
  /** What is to be added to the hour. */
  amounts: Amounts
  /** First instant of the month whose invoice has it: the hour's own while that is open, otherwise the first that is. */
  billedMonth: Date
  recordedAt: Date
  /** Of the tenant's chain of corrections (see `hash-chain.ts`), in hexadecimal. */
  previous: string
  hash: string
}

export interface ClosedMonth {
  tenantId: string
  /** First instant, UTC. */
  month: Date
  /** Closed hours in which anything was used, in order. */
  hours: HourBucket[]
  /** Those billed with this month, by number. */
  corrections: Correction[]
  /** The chain before the month's first hour and after its last (see `hash-chain.ts`), in hexadecimal. */
  previous: string
  hash: string
  /** Since when nothing of `hours` and `corrections` can change any more; undefined while the month is open. */
  closedAt: Date | undefined
}

/** A tenant's month as it is stored: little, until it is read. */
export interface StoredMonth {
  /** As in `ClosedMonth`. */
  closedAt: Date | undefined
  /** Whether there is any closed hour. */
  hasHours: boolean
  /** Starts of the hours that its corrections are of. */
  corrected: readonly Date[]
  /** @throws Error when what is stored does not fit its chain */
  read(): ClosedMonth
}

/** What billing reads of the ledger; every read checks what is stored against its chain of hashes. */
export interface ClosedUsage {
  /**
   * @param month its first instant, UTC
   * @returns an empty open month where the ledger has nothing
   * @throws Error when what is stored does not fit its chain
   */
  month(tenantId: string, month: Date): Promise<ClosedMonth>
  /** As `month`, of many tenants at one instant; each of them has one. What is wrong with one shows when that one is read. */
  months(tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, StoredMonth>>
  /**
   * Up to where a tenant's hours are closed, as an hour's start. All of them are in what is read after this was asked.
   * @param settled hours from this one on are not to be closed yet
   */
  closedUntil(tenantId: string, settled: Date): Promise<Date>
  /** Tenants whose month is closed, in order of their ids, those that are gone by now too. */
  closedTenants(month: Date, page: { after: string | undefined; limit: number }): Promise<string[]>
}
