// Decides how many of a tenant's monthly requests a gateway is granted now. Pure.

export interface LeaseSituation {
  /** The plan's limit. */
  limit: number
  /**
   * The requests granted to this gateway before, used ones included. `others` are those granted to all other gateways
   * together.
   */
  own: number
  others: number
  /** The unused requests of other gateways that called recently. */
  reclaimable: number
  /** The number that the gateway requests. `waiting` is the number of requests that wait at this moment. */
  requested: number
  waiting: number
}

export interface LeaseDecision {
  /** The number of further requests that are granted. */
  amount: number
  state: 'granted' | 'pending' | 'exhausted'
  /** Whether other gateways are to release what they have not used. */
  recall: boolean
}

/** One gateway gets at most this fraction of what is free, so that the others can be served too. */
const share = 8

/**
 * Decides a lease. Waiting requests are granted while any are free. Beyond them at most an eighth of what is free is
 * granted, so that leases are small near the limit, and at least one where the gateway has none. The sum of all grants
 * never exceeds the limit.
 */
export function decideLease({ limit, own, others, reclaimable, requested, waiting }: LeaseSituation): LeaseDecision {
  const free = Math.max(0, limit - own - others)
  const ahead = Math.max(Math.floor(free / share), own === 0 ? 1 : 0)
  const amount = Math.min(free, Math.max(waiting, Math.min(requested, ahead)))
  if (amount >= waiting) return { amount, state: 'granted', recall: false }
  // Some of the waiting requests get none.
  const recall = reclaimable > 0
  return { amount, state: amount > 0 ? 'granted' : recall ? 'pending' : 'exhausted', recall }
}
