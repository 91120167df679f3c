// The outcomes of taking a part of a quota.

/** `waits`: the waiter is called later. `full`: too many wait already. */
export type TakeOutcome = 'taken' | 'waits' | 'full' | 'exhausted' | 'unknown'
