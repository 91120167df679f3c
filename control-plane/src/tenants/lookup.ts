// Finds the tenant or region of an ID.
import { isTenantId } from '@tenantry/contract'
import type { RegionConfig } from '../regions/index.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import type { Tenant } from './tenant.ts'
import type { TenantStore } from './store.ts'

/** Returns the tenant of an ID in a request. @throws ControlError TENANT_NOT_FOUND, also for an invalid ID */
export async function foundTenant(deps: { tenants: Pick<TenantStore, 'get'> }, id: string): Promise<Tenant> {
  const tenant = isTenantId(id) ? await deps.tenants.get(id) : undefined
  if (tenant === undefined) throw tenantNotFound()
  return tenant
}

/** Returns the configuration of a tenant's region. @throws Error if it was removed while tenants are in the region */
export function regionOf(deps: { regions: readonly RegionConfig[] }, tenant: Tenant): RegionConfig {
  const region = deps.regions.find(({ id }) => id === tenant.region)
  if (region === undefined)
    throw new Error(`The region "${tenant.region}" of the tenant ${tenant.id} is not configured.`)
  return region
}

/** Returns the region of an ID in a request. @throws ControlError UNKNOWN_REGION */
export function regionNamed(deps: { regions: readonly RegionConfig[] }, id: string): RegionConfig {
  const region = deps.regions.find((candidate) => candidate.id === id)
  if (region !== undefined) return region
  const allowed = deps.regions.map((candidate) => candidate.id).join(', ')
  throw new ControlError('UNKNOWN_REGION', `Unknown region "${id.slice(0, 100)}". Allowed: ${allowed}.`)
}
