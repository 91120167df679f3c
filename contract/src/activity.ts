// Who used a gateway lately: what the control plane must know to pause a tenant that nobody uses.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/** How busy one tenant is at one gateway, by which the control plane decides whether to pause it. */
export const TenantActivity = Type.Object({
  /** When a request, upgraded connection or SQL session of the tenant last began or ended. ISO 8601, UTC. */
  last_request_at: Type.String(),
  /** Requests, upgraded connections and SQL sessions under way, those that wait for the tenant to wake among them. */
  open: Type.Integer({ minimum: 0 }),
})
export type TenantActivity = Static<typeof TenantActivity>

/** A gateway's response about who uses it (`internalPaths.activity`). */
export const Activity = Type.Object({
  /** The gateway's start: nothing is known of what was before. ISO 8601, UTC. */
  since: Type.String(),
  /** Those that were seen since then, by id. */
  tenants: Type.Record(TenantId, TenantActivity),
})
export type Activity = Static<typeof Activity>
