// Finds tenants for billing, which continues after a tenant is deleted.
import { isTenantId } from '@tenantry/contract'
import { nextMonth } from '../platform/months.ts'
import { tenantNotFound } from '../platform/errors.ts'
import type { InvoiceStore } from './store-invoices.ts'
import type { PlanHistory } from '../plans/index.ts'
import type { TenantStore } from '../tenants/index.ts'

/** The dependencies that determine whether a tenant is invoiced. */
export interface InvoicedTenantDeps {
  tenants: Pick<TenantStore, 'get'>
  invoices: InvoiceStore
  history: PlanHistory
  /** Returns the current time. */
  now: () => Date
}

/**
 * Returns the id of a tenant that exists or has invoices.
 * @throws ControlError TENANT_NOT_FOUND
 */
export async function knownTenant(deps: InvoicedTenantDeps, id: string): Promise<string> {
  if (
    isTenantId(id) &&
    ((await deps.tenants.get(id)) !== undefined ||
      (await deps.invoices.list(id, { limit: 1, cursor: undefined })).items.length > 0)
  )
    return id
  throw tenantNotFound()
}

/**
 * Returns the id of a tenant as `knownTenant` does, or of a deleted one that had a plan between `from` and `to`.
 * @throws ControlError TENANT_NOT_FOUND
 */
export async function billedTenant(
  deps: InvoicedTenantDeps,
  id: string,
  from = new Date(0),
  to = nextMonth(deps.now()),
): Promise<string> {
  if (isTenantId(id) && (await deps.history.periods(id, from, to)).length > 0) return id
  return knownTenant(deps, id)
}
