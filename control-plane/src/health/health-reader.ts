// What is known of a tenant's health: what its runtime says and, of a tenant with services of its own, how these stand;
// each with the time it was seen.
import { ComponentHealth, TenantHealth } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import type { Tenant } from '../tenants/index.ts'

export const ServiceHealth = Type.Object({
  ...ComponentHealth.properties,
  container: Type.Union([
    Type.Object({
      state: Type.String(),
      health: Type.Enum(['none', 'starting', 'healthy', 'unhealthy']),
      restarts: Type.Integer(),
      started_at: Type.Union([Type.String(), Type.Null()]),
      exit_code: Type.Integer({ description: 'Of the last end; 0 while it runs' }),
      out_of_memory: Type.Boolean(),
    }),
    Type.Null(),
  ]),
})
export type ServiceHealth = Static<typeof ServiceHealth>

export const Health = Type.Object({
  ...TenantHealth.properties,
  components: Type.Object({
    ...TenantHealth.properties.components.properties,
    postgres: Type.Optional(ServiceHealth),
    runtime: Type.Optional(ServiceHealth),
  }),
})
export type Health = Static<typeof Health>

export interface HealthReader {
  /** Unreachable or silent: a component is `unknown`. Never throws for that. */
  read(tenant: Tenant): Promise<Health>
}
