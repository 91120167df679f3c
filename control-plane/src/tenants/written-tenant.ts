// A tenant after a write, with the operation of the write, as the API returns it.
import { Type, type Static } from 'typebox'
import type { RegionConfig } from '../regions/index.ts'
import { regionOf } from './lookup.ts'
import { OperationBody, TenantBody, toOperationBody, toTenantBody } from './tenant-body.ts'
import type { TenantState, TenantWrite } from './tenant-write.ts'

interface PresentDeps {
  regions: readonly RegionConfig[]
}

/** A tenant with the operation that carries out a change, as the API returns it. */
export const ChangedTenant = Type.Object({ ...TenantBody.properties, operation: OperationBody })
type ChangedTenant = Static<typeof ChangedTenant>

/** A tenant with its operation, or with null instead of it, as the API returns it. @param description of the null */
export const tenantStateBody = (description: string) =>
  Type.Object({ ...TenantBody.properties, operation: Type.Union([OperationBody, Type.Null()], { description }) })
type TenantStateBody = Static<ReturnType<typeof tenantStateBody>>

/** Converts a tenant after a change for the API. @throws Error if its region is not configured */
export function toChangedTenant(deps: PresentDeps, { tenant, operation }: TenantWrite): ChangedTenant {
  return { ...toTenantBody(tenant, regionOf(deps, tenant)), operation: toOperationBody(operation) }
}

/** Converts a tenant after a write that may have changed nothing. @throws Error if its region is not configured */
export function toTenantStateBody(deps: PresentDeps, { tenant, operation }: TenantState): TenantStateBody {
  if (operation !== undefined) return toChangedTenant(deps, { tenant, operation })
  return { ...toTenantBody(tenant, regionOf(deps, tenant)), operation: null }
}
