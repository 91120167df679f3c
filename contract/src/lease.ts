// Distributes the limits of a tenant's plan among gateways: leases of the month's requests, and slots for long-lived
// connections. Both are deducted before they are used.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

const Count = Type.Integer({ minimum: 0 })
const Uuid = Type.String({ pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$' })
const Hour = Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00.000Z$' })

/** Report of one instance of a gateway about one tenant. All counts are since the month's start. */
export const LeaseReport = Type.Object({
  tenant_id: TenantId,
  /** `YYYY-MM` of the counts; absent before the first lease. */
  month: Type.Optional(Type.String({ pattern: '^[0-9]{4}-[0-9]{2}$' })),
  /** Admitted requests. */
  used: Count,
  /** Start of the UTC hour in ISO 8601. `used_before` is how many of `used` were admitted before it. */
  hour: Type.Optional(Hour),
  used_before: Count,
  /** Requests that the instance retains, `used` included. It returns the rest of its grants. */
  keep: Count,
  /** Remaining lease of an earlier instance that this one has taken over, reported until it is accepted. */
  inherited: Type.Optional(Type.Object({ boot: Uuid, amount: Count })),
  /** Additional requests that the instance needs, and how many of them are waiting at this moment. */
  ask: Count,
  waiting: Count,
})
export type LeaseReport = Static<typeof LeaseReport>

/** Report of one instance of a gateway about one tenant's long-lived connections. */
export const SlotReport = Type.Object({
  tenant_id: TenantId,
  open: Count,
  /** Slots that the instance retains. It returns the rest of its grants. */
  keep: Count,
  /**
   * Additional slots that it needs, and how many of them are for connections that are waiting at this moment, or are
   * open without a slot.
   */
  ask: Count,
  waiting: Count,
})
export type SlotReport = Static<typeof SlotReport>

/** A gateway's call for leases and slots. A gateway makes one at a time. */
export const LeaseCall = Type.Object({
  /** Name of the gateway, as in `UsagePush`. */
  source: Type.String({ minLength: 1, maxLength: 128 }),
  boot: Uuid,
  /** Number that increases with each call of the instance. A late call has no effect. */
  sequence: Type.Integer({ minimum: 1 }),
  /** Earlier instances whose counts are not all acknowledged yet. Their leases stay unchanged. */
  unfinished: Type.Array(Uuid),
  /** Whether this is the last call, after which no request is admitted. */
  stopping: Type.Boolean(),
  reports: Type.Array(LeaseReport, { maxItems: 1_000 }),
  /** Reports of long-lived connections; absent if there are none. */
  slots: Type.Optional(Type.Array(SlotReport, { maxItems: 1_000 })),
})
export type LeaseCall = Static<typeof LeaseCall>

/** Grant of a tenant's monthly requests to one gateway. Counts are requests since the month's start. */
export const LeaseGrant = Type.Object({
  tenant_id: TenantId,
  /** Requests that may be admitted since the month's start, earlier ones included; null for any number. */
  granted: Type.Union([Count, Type.Null()]),
  /** Limit of the plan, and in `used` the admitted requests that all gateways together have reported. */
  limit: Type.Union([Count, Type.Null()]),
  used: Count,
  /** State of the grant. `pending`: another gateway must first return requests; `exhausted`: none remain. */
  state: Type.Union([Type.Literal('granted'), Type.Literal('pending'), Type.Literal('exhausted')]),
})
export type LeaseGrant = Static<typeof LeaseGrant>

/** Grant of a number of concurrent long-lived connections of a tenant to one gateway. */
export const SlotGrant = Type.Object({
  tenant_id: TenantId,
  /** Maximum number of open connections at this gateway; null for any number. */
  held: Type.Union([Count, Type.Null()]),
  /**
   * Limit of the plan, and in `open` the open connections that all gateways together have reported, with those that waited
   * for this grant.
   */
  limit: Type.Union([Count, Type.Null()]),
  open: Count,
  /** State of the grant, as for requests. */
  state: LeaseGrant.properties.state,
})
export type SlotGrant = Static<typeof SlotGrant>

/** The control plane's response to a `LeaseCall`. */
export const LeaseResponse = Type.Object({
  /** The control plane's clock; its month and the month's end follow, in ISO 8601. */
  now: Type.String(),
  month: Type.String(),
  resets_at: Type.String(),
  /** Whether the call was processed; false for a late call, or an instance that has ended. */
  accepted: Type.Boolean(),
  grants: Type.Array(LeaseGrant),
  /** Tenants whose unused requests other gateways need. */
  recalled: Type.Array(TenantId),
  slots: Type.Array(SlotGrant),
  /** Tenants whose unused slots other gateways need. */
  slots_recalled: Type.Array(TenantId),
})
export type LeaseResponse = Static<typeof LeaseResponse>
