// How many requests of a tenant's month a gateway is granted now. Pure.

export interface LeaseSituation {
  /** Of the plan. */
  limit: number
  /** Granted to this gateway already, and to all others together; what was used is included. */
  own: number
  others: number
  /** What others that were heard of lately have not used. */
  reclaimable: number
  /** Wanted, and how many of those wait at this moment. */
  request: number
  waiting: number
}

export interface LeaseDecision {
  /** Further requests granted. */
  amount: number
  state: 'granted' | 'pending' | 'exhausted'
  /** Whether others are to give back what they have not used. */
  recall: boolean
}

/** A part of what is left goes to one gateway, so that the others find some too. */
const share = 8

/**
 * What waits is granted as long as there is anything; beyond that at most an eighth of what is left, so that leases are
 * small near the end, and at least one where the gateway has none. The sum of all grants never exceeds the limit.
 */
export function decideLease({ limit, own, others, reclaimable, request, waiting }: LeaseSituation): LeaseDecision {
  const free = Math.max(0, limit - own - others)
  const ahead = Math.max(Math.floor(free / share), own === 0 ? 1 : 0)
  const amount = Math.min(free, Math.max(waiting, Math.min(request, ahead)))
  if (amount >= waiting) return { amount, state: 'granted', recall: false }
  // Some of those who wait are left without.
  const recall = reclaimable > 0
  return { amount, state: amount > 0 ? 'granted' : recall ? 'pending' : 'exhausted', recall }
}
