// What becomes of a request for a part of a quota.

/** `waits`: the waiter will be told. `full`: too many wait already. */
export type Taken = 'taken' | 'waits' | 'full' | 'exhausted' | 'unknown'
