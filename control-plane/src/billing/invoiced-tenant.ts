// Which tenants there are for billing: it goes on when a tenant is gone.
import { isTenantId } from '@tenantry/contract'
import { nextMonth } from '../platform/months.ts'
import { ControlError } from '../platform/errors.ts'
import type { InvoiceStore } from './invoice-store.ts'
import type { PlanHistory } from '../plans/index.ts'
import type { TenantStore } from '../tenants/index.ts'

/** What tells whether a tenant is invoiced. */
export interface InvoicedTenantDeps {
  tenants: Pick<TenantStore, 'get'>
  invoices: InvoiceStore
  history: PlanHistory
  /** The current time. */
  now: () => Date
}

/** Its own id, when the tenant is there or has invoices. @throws ControlError TENANT_NOT_FOUND */
export async function knownTenant(deps: InvoicedTenantDeps, id: string): Promise<string> {
  if (
    isTenantId(id) &&
    ((await deps.tenants.get(id)) !== undefined ||
      (await deps.invoices.list(id, { limit: 1, cursor: undefined })).items.length > 0)
  )
    return id
  throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
}

/** As `knownTenant`, or one that is gone and had a plan at any time, or in the time that is given. */
export async function billedTenant(
  deps: InvoicedTenantDeps,
  id: string,
  from = new Date(0),
  to = nextMonth(deps.now()),
): Promise<string> {
  if (isTenantId(id) && (await deps.history.periods(id, from, to)).length > 0) return id
  return knownTenant(deps, id)
}
