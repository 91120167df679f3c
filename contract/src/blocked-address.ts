// The addresses that the operator has blocked, as gateways receive them.
import { Type, type Static } from 'typebox'

/** Maximum number of blocked addresses and networks of an installation. */
export const maxBlockedAddresses = 10_000

/** A client address or network whose connections and requests gateways reject. */
export const BlockedAddress = Type.Object({
  /** The canonical text of the address or network, for example `203.0.113.0/24`. */
  address: Type.String({ minLength: 2, maxLength: 45 }),
  /** Grows with each change of any entry. */
  generation: Type.Integer({ minimum: 1 }),
  /** Time in ISO 8601 from which the entry has no effect; null if it has no end. */
  expires_at: Type.Union([Type.String(), Type.Null()]),
})
export type BlockedAddress = Static<typeof BlockedAddress>
