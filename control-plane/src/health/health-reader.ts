// What is known of a tenant's health, with the time it was seen.
import type { TenantHealth } from '@tenantry/contract'
import type { Tenant } from '../tenants/tenant.ts'

export interface HealthReader {
  /** Asks the tenant's runtime. Unreachable or silent: every component is `unknown`. Never throws. */
  read(tenant: Tenant): Promise<TenantHealth>
}
