// What the leader does to the ledger. Every write carries its epoch, and is refused when another has taken the lead since.

/** Part of all tenants: `from` ≤ id < `to`, so that no write takes all of them at once. */
export interface TenantRange {
  from: string
  to: string
}

export interface MissingSources {
  gateway: number
  home: number
}

export interface LedgerClosing {
  /** How far all living sources that count for all tenants are complete; undefined when there is none. */
  completeUntil(): Promise<Date | undefined>
  /** How many living sources are not complete so far: gateways, and homes of tenants that are there. */
  missing(until: Date): Promise<MissingSources>
  /**
   * Books what was counted in hours before `until`: closed hours and corrections. A tenant whose own home is not complete
   * so far is booked as far as that is.
   * @param page tenants after an id, at most `limit`
   * @returns the last tenant looked at, or undefined when there was none left
   * @throws LeadershipLost
   */
  closeHours(until: Date, page: { after: string; limit: number }, epoch: bigint): Promise<string | undefined>
  /** The first month that some tenant was under a plan in, or used anything in, and has not closed; undefined when there is none. */
  firstOpenMonth(): Promise<Date | undefined>
  /**
   * Closes the month of each tenant that has all of it and no open month before it. Also of tenants that used nothing, but were
   * under a plan.
   * @returns of how many
   * @throws LeadershipLost
   */
  closeMonth(month: Date, tenants: TenantRange, epoch: bigint): Promise<number>
  /** What comes for hours before this, from sources that had completed them, is a repeat. */
  keptFrom(): Promise<Date>
  /**
   * Removes counters of hours before `keptFrom` that are booked, where their source had completed the hour.
   * @throws LeadershipLost
   */
  removePosted(tenants: TenantRange, epoch: bigint): Promise<void>
  /** @throws LeadershipLost */
  keepFrom(hour: Date, epoch: bigint): Promise<void>
}
