// The data that a gateway needs to forward one tenant's requests.
import { Type, type Static } from 'typebox'
import { TenantId, TenantName } from './ids.ts'

const port = '(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'

/** Treatment of a tenant's requests by a gateway. */
export const RoutePhase = Type.Union([
  /** The tenant is not served now: 503 with Retry-After. */
  Type.Literal('pending'),
  Type.Literal('ready'),
  /** The tenant is suspended: 403 with the reason, or 402 if a payment is required. */
  Type.Literal('suspended'),
  /** The tenant is stopped because it was idle. A request is held while the control plane wakes the tenant. */
  Type.Literal('paused'),
  /** The tenant is deleted: 404, as for one that never existed. */
  Type.Literal('deleted'),
])
export type RoutePhase = Static<typeof RoutePhase>

const Count = Type.Integer({ minimum: 0 })
const CountOrUnlimited = Type.Union([Count, Type.Null()])

/** A steady rate, and the number of additional requests in a burst. */
export const RateLimit = Type.Object({ per_second: Type.Integer({ minimum: 1 }), burst: Type.Integer({ minimum: 1 }) })
export type RateLimit = Static<typeof RateLimit>

/** Limits of a tenant at gateways; null is unlimited. */
export const RouteLimits = Type.Object({
  requests_per_month: CountOrUnlimited,
  /** Maximum number of concurrent long-lived connections. */
  connections: CountOrUnlimited,
  rate: Type.Union([RateLimit, Type.Null()]),
  /**
   * The end of the month in which the tenant has reached its spending limit, ISO 8601: until then, its requests are
   * rejected. Absent if they are not.
   */
  spending_reached_until: Type.Optional(Type.String()),
})
export type RouteLimits = Static<typeof RouteLimits>

/** The data that a gateway needs to forward one tenant's requests. */
export const Route = Type.Object({
  tenant_id: TenantId,
  name: TenantName,
  generation: Type.Integer({ minimum: 1 }),
  phase: RoutePhase,
  /** Base URLs of the runtimes that serve the tenant, for example `http://127.0.0.1:4010`. */
  runtimes: Type.Array(Type.String()),
  /** Whether the runtimes serve this tenant only. They know the tenant's token, and never the installation's. */
  dedicated: Type.Boolean(),
  /**
   * Address `host:port` of the Postgres with the tenant's database, or `directory:port` of its Unix socket; absent if
   * tenants have no SQL access.
   */
  postgres: Type.Optional(Type.String({ pattern: `^.+:${port}$` })),
  /**
   * Name of the database that holds the home; absent in a route of an earlier version. A login that names a shared database
   * other than this one is from before a move, and leads here.
   */
  home_database: Type.Optional(Type.String({ minLength: 1 })),
  /** Access to read-only copies of the database; absent if the tenant has none. */
  read_only: Type.Optional(
    Type.Object({
      /** Address `host:port` of a router to the copies. */
      postgres: Type.String({ pattern: `^.+:${port}$` }),
      /** Name of the database with which SQL clients choose the copies. It is not the name of a database. */
      alias: Type.String({ minLength: 1 }),
      /** Name of the database to which that leads. */
      database: Type.String({ minLength: 1 }),
    }),
  ),
  /** Limits at the gateway; absent if there are none. */
  limits: Type.Optional(RouteLimits),
  /** Public text for the phase `suspended`. */
  reason: Type.Optional(Type.String()),
  /** Whether a payment ends the phase `suspended`. */
  payment_required: Type.Optional(Type.Boolean()),
})
export type Route = Static<typeof Route>

/** A route as a gateway has applied it. */
export const AppliedRoute = Type.Object({
  ...Route.properties,
  /**
   * Whether the gateway can serve the tenant without the control plane: it holds a lease of the month's requests and
   * slots for connections, or none can be granted in advance. Absent if the gateway does not report it.
   */
  leased: Type.Optional(Type.Boolean()),
})
export type AppliedRoute = Static<typeof AppliedRoute>
