// From an id in a path to the thing, or the error that says there is none.
import { isTenantId } from '@tenantry/contract'
import type { RegionConfig } from '../regions/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { Tenant } from './tenant.ts'
import type { TenantStore } from './tenant-store.ts'

/** The tenant of an id in a request. @throws ControlError TENANT_NOT_FOUND, also for a text that is no tenant's id */
export async function foundTenant(deps: { tenants: Pick<TenantStore, 'get'> }, id: string): Promise<Tenant> {
  const tenant = isTenantId(id) ? await deps.tenants.get(id) : undefined
  if (tenant === undefined) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
  return tenant
}

/** @throws Error when the region was taken out of the configuration while tenants live in it */
export function regionOf(deps: { regions: readonly RegionConfig[] }, tenant: Tenant): RegionConfig {
  const region = deps.regions.find(({ id }) => id === tenant.region)
  if (region === undefined) throw new Error(`region ${tenant.region} of ${tenant.id} is not configured`)
  return region
}
