// What a gateway must know to forward one tenant's requests.
import { Type, type Static } from 'typebox'
import { TenantId, TenantName } from './ids.ts'

const port = '(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'

/** What a gateway does with a tenant's requests. */
export const RoutePhase = Type.Union([
  /** Not (yet, or for now) served: 503 with Retry-After. */
  Type.Literal('pending'),
  Type.Literal('ready'),
  /** 403 with the reason; 402 when payment is what it takes. */
  Type.Literal('suspended'),
  /** Stopped because nobody asked for it: a request is held while the control plane wakes the tenant. */
  Type.Literal('paused'),
  /** 404, as if it never was. */
  Type.Literal('deleted'),
])
export type RoutePhase = Static<typeof RoutePhase>

const Count = Type.Integer({ minimum: 0 })
const CountOrUnlimited = Type.Union([Count, Type.Null()])

/** A steady rate, and how many requests may come at once on top of it. */
export const RateLimit = Type.Object({ per_second: Type.Integer({ minimum: 1 }), burst: Type.Integer({ minimum: 1 }) })
export type RateLimit = Static<typeof RateLimit>

/** What the tenant's plan allows at gateways; null is unlimited. */
export const RouteLimits = Type.Object({
  requests_per_month: CountOrUnlimited,
  /** Connections that stay, at once. */
  connections: CountOrUnlimited,
  rate: Type.Union([RateLimit, Type.Null()]),
})
export type RouteLimits = Static<typeof RouteLimits>

/** What a gateway must know to forward one tenant's requests. */
export const Route = Type.Object({
  tenant_id: TenantId,
  name: TenantName,
  generation: Type.Integer({ minimum: 1 }),
  phase: RoutePhase,
  /** Base URLs of the runtimes that serve the tenant, for example `http://127.0.0.1:4010`. */
  runtimes: Type.Array(Type.String()),
  /** Whether the runtimes are this tenant's alone: they know the tenant's token, never the installation's. */
  dedicated: Type.Boolean(),
  /** Where the Postgres with the tenant's database takes connections, `host:port`; absent where tenants get no SQL. */
  postgres: Type.Optional(Type.String({ pattern: `^.+:${port}$` })),
  /** Absent: none. */
  limits: Type.Optional(RouteLimits),
  /** Public text for `suspended`. */
  reason: Type.Optional(Type.String()),
  /** Of `suspended`: whether paying ends it. */
  payment_required: Type.Optional(Type.Boolean()),
})
export type Route = Static<typeof Route>

/** A route as a gateway has applied it. */
export const AppliedRoute = Type.Object({
  ...Route.properties,
  /**
   * Whether the gateway serves the tenant without the control plane: it holds a lease of the month's requests and slots for
   * connections, or knows that none can be had in advance. Absent: it does not say.
   */
  leased: Type.Optional(Type.Boolean()),
})
export type AppliedRoute = Static<typeof AppliedRoute>
