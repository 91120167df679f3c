// What a gateway must know to forward one tenant's requests.
import { Type, type Static } from 'typebox'
import { TenantId, TenantName } from './ids.ts'

export const RoutePhase = Type.Union([
  /** Not (yet, or for now) served: 503 with Retry-After. */
  Type.Literal('pending'),
  Type.Literal('ready'),
  /** 403 with the reason. */
  Type.Literal('suspended'),
  /** 404, as if it never was. */
  Type.Literal('deleted'),
])
export type RoutePhase = Static<typeof RoutePhase>

export const Route = Type.Object({
  tenant_id: TenantId,
  name: TenantName,
  generation: Type.Integer({ minimum: 1 }),
  phase: RoutePhase,
  /** Base URLs of the runtimes that serve the tenant, for example `http://127.0.0.1:4010`. */
  runtimes: Type.Array(Type.String()),
  /** Public text for `suspended`. */
  reason: Type.Optional(Type.String()),
})
export type Route = Static<typeof Route>
