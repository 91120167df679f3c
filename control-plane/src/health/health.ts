// The health of a tenant: the report of its runtime and, for a tenant with services of its own, the state of these.
// Each has the time of its observation.
import { ComponentHealth, TenantHealth } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { ClusterMemberBody } from '../clusters/index.ts'

export const ServiceHealth = Type.Object({
  ...ComponentHealth.properties,
  container: Type.Union([
    Type.Object({
      state: Type.String(),
      health: Type.Enum(['none', 'starting', 'healthy', 'unhealthy']),
      restarts: Type.Integer(),
      started_at: Type.Union([Type.String(), Type.Null()]),
      exit_code: Type.Integer({ description: 'The code of the last exit; 0 while it runs' }),
      out_of_memory: Type.Boolean(),
    }),
    Type.Null(),
  ]),
})
export type ServiceHealth = Static<typeof ServiceHealth>

export const Health = Type.Object({
  ...TenantHealth.properties,
  members: Type.Optional(
    Type.Array(ClusterMemberBody, { description: "The members of the tenant's cluster; empty if none responds" }),
  ),
  components: Type.Object({
    ...TenantHealth.properties.components.properties,
    postgres: Type.Optional(ServiceHealth),
    runtime: Type.Optional(ServiceHealth),
  }),
})
export type Health = Static<typeof Health>
