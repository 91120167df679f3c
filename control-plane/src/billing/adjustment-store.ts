// Where adjustments are kept, as the API and the making of invoices use it.
import type { PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Adjustment } from './adjustment.ts'

interface NewAdjustment {
  tenantId: string
  description: string
  /** Millionths, not 0. */
  amount: bigint
  currency: string
}

export interface AdjustmentStore {
  /** Oldest first; also of a tenant that is gone. */
  list(tenantId: string, page: PageRequest): Promise<{ items: Adjustment[]; nextCursor: string | undefined }>
  /** @throws ControlError TOO_MANY_ADJUSTMENTS */
  create(given: NewAdjustment, write: RecordedWrite): Promise<Adjustment>
  /** @returns what was removed. @throws ControlError ADJUSTMENT_NOT_FOUND; ADJUSTMENT_BILLED when it stands on a final invoice */
  remove(tenantId: string, id: string, write: RecordedWrite): Promise<Adjustment>
  /**
   * Returns what an invoice of the month would bill of each tenant, oldest first: the adjustments that are on no invoice,
   * or on the month's draft. Tenants without any are left out.
   */
  due(tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, Adjustment[]>>
}
