// The recent activity at a gateway, from which the control plane decides to pause an idle tenant.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/** Activity of one tenant at one gateway, from which the control plane decides whether to pause the tenant. */
export const TenantActivity = Type.Object({
  /** Time in ISO 8601, UTC, at which a request, upgraded connection or SQL session of the tenant last began or ended. */
  last_request_at: Type.String(),
  /** Requests, upgraded connections and SQL sessions in progress, including those that wait for the tenant to wake. */
  open: Type.Integer({ minimum: 0 }),
})
export type TenantActivity = Static<typeof TenantActivity>

/** A gateway's response with the activity of its tenants (`internalPaths.activity`). */
export const Activity = Type.Object({
  /** Time of the gateway's start in ISO 8601, UTC. Earlier activity is unknown. */
  since: Type.String(),
  /** Tenants with activity since then, by ID. */
  tenants: Type.Record(TenantId, TenantActivity),
})
export type Activity = Static<typeof Activity>
