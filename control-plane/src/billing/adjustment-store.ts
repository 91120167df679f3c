// The store of adjustments, as the API and the code that makes invoices use it.
import type { PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Adjustment } from './adjustment.ts'

interface NewAdjustment {
  tenantId: string
  description: string
  /** The net amount in millionths of the currency's unit; never 0. */
  amount: bigint
  currency: string
}

export interface AdjustmentStore {
  /** Lists a tenant's adjustments, oldest first. The tenant may be deleted. */
  list(tenantId: string, page: PageRequest): Promise<{ items: Adjustment[]; nextCursor: string | undefined }>
  /** @throws ControlError TOO_MANY_ADJUSTMENTS */
  create(given: NewAdjustment, write: RecordedWrite): Promise<Adjustment>
  /**
   * Deletes an adjustment and returns it.
   * @throws ControlError ADJUSTMENT_NOT_FOUND; ADJUSTMENT_BILLED when it is on a final invoice
   */
  remove(tenantId: string, id: string, write: RecordedWrite): Promise<Adjustment>
  /**
   * Returns the adjustments that an invoice of the month would bill, by tenant and oldest first: those that are on no
   * invoice or on the month's draft. Tenants without any are left out.
   */
  due(tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, Adjustment[]>>
}
