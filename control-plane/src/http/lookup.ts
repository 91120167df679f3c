// From an id in a path to the thing, or the error that says there is none.
import { isTenantId } from '@tenantry/contract'
import type { RegionConfig } from '../regions/region-config.ts'
import { ControlError } from '../errors.ts'
import type { Tenant } from '../tenants/tenant.ts'
import type { ApiDeps } from './deps.ts'

export async function foundTenant(deps: Pick<ApiDeps, 'tenants'>, id: string): Promise<Tenant> {
  const tenant = isTenantId(id) ? await deps.tenants.get(id) : undefined
  if (tenant === undefined) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
  return tenant
}

/** @throws Error when the region was taken out of the configuration while tenants live in it */
export function regionOf(deps: Pick<ApiDeps, 'regions'>, tenant: Tenant): RegionConfig {
  const region = deps.regions.find(({ id }) => id === tenant.region)
  if (region === undefined) throw new Error(`region ${tenant.region} of ${tenant.id} is not configured`)
  return region
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Postgres refuses to compare a uuid column with anything else; such an id names nothing. */
export function isUuid(id: string): boolean {
  return uuid.test(id)
}
