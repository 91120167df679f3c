// What the API reads of the ledger: closed hours and what is still open, at one instant.
import type { Amounts, HourBucket } from './hour-bucket.ts'
import type { Correction } from './closed-usage.ts'
import type { Cells } from './packed-cells.ts'

export interface MonthUsage {
  /** Of what was closed, with the corrections billed with this very month, and of what is open. */
  totals: Amounts
  cells: Cells
  /** Since when it can't change. */
  closedAt: Date | undefined
  /** Whether the ledger has anything of the month. */
  isThere: boolean
  /** Of the month's hours, whichever month they are billed with. */
  corrections: Correction[]
}

export interface MonthHours extends MonthUsage {
  closed: HourBucket[]
  /** Hours in which something is not booked yet, in order; one that is closed too gets a correction soon. */
  open: HourBucket[]
  /** The chain before the first closed hour and after the last. */
  previous: string
  hash: string
}

export interface TenantMonth {
  tenantId: string
  /** Null of a tenant that is gone. */
  name: string | null
  totals: Amounts
  closedAt: Date | undefined
}

export interface UsagePostings {
  /** @param month its first instant, UTC */
  month(tenantId: string, month: Date): Promise<MonthUsage>
  hours(tenantId: string, month: Date): Promise<MonthHours>
  /** Tenants that were there before the month's end, or used anything in it, in order of their ids. */
  page(month: Date, page: { after: string; limit: number }): Promise<TenantMonth[]>
  /** Whether there is, or was, such a tenant; a warm one is nobody's. */
  isKnown(tenantId: string): Promise<boolean>
  /** Names of living sources that may still have counts of hours before `until`: of the gateways, and of the tenant's home. */
  missing(until: Date, tenantId?: string): Promise<string[]>
}
