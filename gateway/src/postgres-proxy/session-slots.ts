// Limits the SQL clients that are logging in and those with sessions. Clients that know only a tenant's name take no slot
// of clients that the tenant's Postgres has admitted, and one address takes no slot of another.
import type { Limits } from '../limits.ts'

/** Releases the slot. Idempotent. */
export type Leave = () => void

/** The number of slots in use by key. */
type SlotCounts = Map<string, number>

type SlotLimit = readonly [counts: SlotCounts, key: string, max: number]

/** Counts slots. Each method takes a slot, or returns undefined when none is free. */
export class SessionSlots {
  readonly #limits: Limits
  readonly #unauthenticatedClients: SlotCounts = new Map()
  readonly #logins: SlotCounts = new Map()
  readonly #loginsFrom: SlotCounts = new Map()
  readonly #waiting: SlotCounts = new Map()
  readonly #sessions: SlotCounts = new Map()
  readonly #allSessions: SlotCounts = new Map()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Takes a slot for a connection whose client no Postgres has admitted yet. */
  unauthenticated(address: string): Leave | undefined {
    return take([[this.#unauthenticatedClients, address, this.#limits.sqlUnauthenticatedPerAddress]])
  }

  /**
   * Takes a slot for a client that has only named a tenant, and waits for it to wake or for its Postgres to admit the
   * client.
   */
  login(tenantId: string, address: string): Leave | undefined {
    const { sqlLoginsPerTenant, sqlLoginsPerTenantAndAddress } = this.#limits
    return take([
      [this.#logins, tenantId, sqlLoginsPerTenant],
      [this.#loginsFrom, `${tenantId} ${address}`, sqlLoginsPerTenantAndAddress],
    ])
  }

  /** Takes a slot for a login that waits for a paused tenant to wake. */
  wake(address: string): Leave | undefined {
    return take([[this.#waiting, address, this.#limits.sqlWaitingPerAddress]])
  }

  /** Takes a slot for a client that the tenant's Postgres has admitted. */
  session(tenantId: string): Leave | undefined {
    const { sqlSessionsPerTenant, sqlSessions } = this.#limits
    return take([
      [this.#sessions, tenantId, sqlSessionsPerTenant],
      [this.#allSessions, '', sqlSessions],
    ])
  }
}

/** Takes a slot within each of the limits, or none at all. */
function take(limits: readonly SlotLimit[]): Leave | undefined {
  if (limits.some(([counts, key, max]) => (counts.get(key) ?? 0) >= max)) return undefined
  for (const [counts, key] of limits) counts.set(key, (counts.get(key) ?? 0) + 1)
  let isTaken = true
  return () => {
    if (!isTaken) return
    isTaken = false
    for (const [counts, key] of limits) {
      const remaining = (counts.get(key) ?? 0) - 1
      if (remaining > 0) counts.set(key, remaining)
      else counts.delete(key)
    }
  }
}
