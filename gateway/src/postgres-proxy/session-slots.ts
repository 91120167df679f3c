// How many may stand before the tenants' databases, and how many be in: whoever has only heard of a tenant takes no place
// of those whom its Postgres has let in, and one address takes none of another's.
import type { Limits } from '../limits.ts'

/** Gives the place back. Harmless when called again. */
export type Leave = () => void

/** Places that are taken, by whom they are counted for. */
type Taken = Map<string, number>

type Bound = readonly [taken: Taken, key: string, most: number]

/** Each method takes a place, or returns undefined when none is free. */
export class SessionSlots {
  readonly #limits: Limits
  readonly #unauthenticatedClients: Taken = new Map()
  readonly #logins: Taken = new Map()
  readonly #loginsFrom: Taken = new Map()
  readonly #waiting: Taken = new Map()
  readonly #sessions: Taken = new Map()
  readonly #allSessions: Taken = new Map()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** A connection whose client no Postgres has let in yet. */
  unauthenticated(address: string): Leave | undefined {
    return take([[this.#unauthenticatedClients, address, this.#limits.sqlUnauthenticatedPerAddress]])
  }

  /** A client that has named the tenant and nothing else: it waits for it to wake, or for its Postgres to let it in. */
  login(tenantId: string, address: string): Leave | undefined {
    const { sqlLoginsPerTenant, sqlLoginsPerTenantAndAddress } = this.#limits
    return take([
      [this.#logins, tenantId, sqlLoginsPerTenant],
      [this.#loginsFrom, `${tenantId} ${address}`, sqlLoginsPerTenantAndAddress],
    ])
  }

  /** A login for which a paused tenant is woken. */
  wake(address: string): Leave | undefined {
    return take([[this.#waiting, address, this.#limits.sqlWaitingPerAddress]])
  }

  /** A client that the tenant's Postgres has let in. */
  session(tenantId: string): Leave | undefined {
    const { sqlSessionsPerTenant, sqlSessions } = this.#limits
    return take([
      [this.#sessions, tenantId, sqlSessionsPerTenant],
      [this.#allSessions, '', sqlSessions],
    ])
  }
}

/** A place within each of the bounds, or none at all. */
function take(bounds: readonly Bound[]): Leave | undefined {
  if (bounds.some(([taken, key, max]) => (taken.get(key) ?? 0) >= max)) return undefined
  for (const [taken, key] of bounds) taken.set(key, (taken.get(key) ?? 0) + 1)
  let isTaken = true
  return () => {
    if (!isTaken) return
    isTaken = false
    for (const [taken, key] of bounds) {
      const left = (taken.get(key) ?? 0) - 1
      if (left > 0) taken.set(key, left)
      else taken.delete(key)
    }
  }
}
