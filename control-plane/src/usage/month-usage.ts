// A month's usage as the API reads it from the ledger: closed hours and open counts, at one instant.
import type { Amounts, HourBucket } from './hour-bucket.ts'
import type { Correction } from './closed-usage.ts'
import type { Cells } from './packed-cells.ts'

export interface MonthUsage {
  /** The totals of closed hours, of corrections that are billed with this month, and of open counts. */
  totals: Amounts
  cells: Cells
  /** The time since which the month can't change. */
  closedAt: Date | undefined
  /** Whether the ledger has any data of the month. */
  isThere: boolean
  /** The corrections of the month's hours, whichever month they are billed with. */
  corrections: Correction[]
}

export interface MonthHours extends MonthUsage {
  closed: HourBucket[]
  /** The hours with counts that are not posted yet, in order. If such an hour is closed, it gets a correction. */
  open: HourBucket[]
  /** The hash of the chain before the first closed hour. `hash` is the one after the last. */
  previous: string
  hash: string
}

export interface TenantMonth {
  tenantId: string
  /** The tenant's name; null for a deleted tenant. */
  name: string | null
  totals: Amounts
  closedAt: Date | undefined
}
