// Health as a part observed it, with the time of the observation.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/** Health of a component; `unknown` if it could not be observed, or should not run. */
export const HealthStatus = Type.Union([Type.Literal('healthy'), Type.Literal('unhealthy'), Type.Literal('unknown')])
export type HealthStatus = Static<typeof HealthStatus>

/** Health of one component of a tenant, as it was at `observed_at`. */
export const ComponentHealth = Type.Object({
  status: HealthStatus,
  /** Time of the observation in ISO 8601, UTC. */
  observed_at: Type.String(),
  /** Public text; never contains secrets or addresses. */
  message: Type.Optional(Type.String({ maxLength: 500 })),
})
export type ComponentHealth = Static<typeof ComponentHealth>

/** A runtime's response about one tenant: whether the manifest is applied, and whether database and storage respond. */
export const TenantHealth = Type.Object({
  tenant_id: TenantId,
  generation: Type.Integer({ minimum: 1 }),
  status: HealthStatus,
  components: Type.Object({
    database: ComponentHealth,
    storage: ComponentHealth,
    functions: ComponentHealth,
  }),
})
export type TenantHealth = Static<typeof TenantHealth>
