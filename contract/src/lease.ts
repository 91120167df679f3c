// How gateways and the control plane share what a tenant's plan allows: its requests of the month by leases, its connections
// that stay by slots; both are deducted before they are used.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

const Count = Type.Integer({ minimum: 0 })
const Uuid = Type.String({ pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$' })
const Hour = Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00.000Z$' })

/** What one incarnation of a gateway says of one tenant. All counts are since the month began. */
export const LeaseReport = Type.Object({
  tenant_id: TenantId,
  /** `YYYY-MM` of the counts; absent before the first lease. */
  month: Type.Optional(Type.String({ pattern: '^[0-9]{4}-[0-9]{2}$' })),
  /** Requests let in. */
  used: Count,
  /** Start of the UTC hour, ISO 8601, and how many of `used` were let in before it. */
  hour: Type.Optional(Hour),
  used_before: Count,
  /** Requests that it still counts on, `used` included; what was granted above is given back. */
  keep: Count,
  /** What is left of an earlier incarnation's lease and is used on by this one; said until it was accepted. */
  inherited: Type.Optional(Type.Object({ boot: Uuid, amount: Count })),
  /** Further requests wanted, and how many of them wait at this moment. */
  ask: Count,
  waiting: Count,
})
export type LeaseReport = Static<typeof LeaseReport>

/** What one incarnation of a gateway says of one tenant's connections that stay. */
export const SlotReport = Type.Object({
  tenant_id: TenantId,
  open: Count,
  /** Slots that it counts on; what was granted above is given back. */
  keep: Count,
  /** Further ones wanted; and how many of them for connections that wait at this moment, or are open without one. */
  ask: Count,
  waiting: Count,
})
export type SlotReport = Static<typeof SlotReport>

/** From a gateway; one at a time. */
export const LeaseCall = Type.Object({
  /** As in `UsagePush`. */
  source: Type.String({ minLength: 1, maxLength: 128 }),
  boot: Uuid,
  /** Rises with each call of the incarnation: a call that comes late does nothing. */
  sequence: Type.Integer({ minimum: 1 }),
  /** Earlier incarnations whose counts are not all acknowledged yet: their leases stay as they are. */
  unfinished: Type.Array(Uuid),
  /** The last call: nothing more is let in. */
  stopping: Type.Boolean(),
  reports: Type.Array(LeaseReport, { maxItems: 1_000 }),
  /** Absent: none. */
  slots: Type.Optional(Type.Array(SlotReport, { maxItems: 1_000 })),
})
export type LeaseCall = Static<typeof LeaseCall>

/**
 * What the control plane has granted one gateway of a tenant's monthly requests. Counts are requests since the month
 * began.
 */
export const LeaseGrant = Type.Object({
  tenant_id: TenantId,
  /** Requests that may be let in since the month began, those that were included; null: any number. */
  granted: Type.Union([Count, Type.Null()]),
  /** Of the plan; and what all gateways together have reported as let in. */
  limit: Type.Union([Count, Type.Null()]),
  used: Count,
  /** `pending`: another gateway is being asked to give back; `exhausted`: there is nothing left to grant. */
  state: Type.Union([Type.Literal('granted'), Type.Literal('pending'), Type.Literal('exhausted')]),
})
export type LeaseGrant = Static<typeof LeaseGrant>

/** How many long-lived connections of a tenant the control plane lets one gateway have open at once. */
export const SlotGrant = Type.Object({
  tenant_id: TenantId,
  /** Connections that may be open at this gateway; null: any number. */
  held: Type.Union([Count, Type.Null()]),
  /** Of the plan; and what all gateways together have reported as open. */
  limit: Type.Union([Count, Type.Null()]),
  open: Count,
  /** As of requests. */
  state: LeaseGrant.properties.state,
})
export type SlotGrant = Static<typeof SlotGrant>

/** The control plane's response to a `LeaseCall`. */
export const LeaseResponse = Type.Object({
  /** The control plane's clock, and the end of its month, ISO 8601. */
  now: Type.String(),
  month: Type.String(),
  resets_at: Type.String(),
  /** False: the call came late, or the incarnation has ended; nothing was done. */
  accepted: Type.Boolean(),
  grants: Type.Array(LeaseGrant),
  /** Tenants of which others want what this gateway has not used. */
  recalled: Type.Array(TenantId),
  slots: Type.Array(SlotGrant),
  /** The same for slots. */
  slots_recalled: Type.Array(TenantId),
})
export type LeaseResponse = Static<typeof LeaseResponse>
