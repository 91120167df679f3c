// The leader's writes to the ledger. Every write carries the leader's epoch, and is rejected when another control plane
// leads.

/** A range of tenants: `from` ≤ id < `to`. No write covers all tenants at once. */
export interface TenantRange {
  from: string
  to: string
}

export interface MissingSources {
  gateway: number
  home: number
}

export interface LedgerClosing {
  /**
   * Returns the time until which all active sources that count for all tenants are complete; undefined when there is
   * none.
   */
  completeUntil(): Promise<Date | undefined>
  /** Counts the active sources that are not complete until then: gateways, and homes of existing tenants. */
  missing(until: Date): Promise<MissingSources>
  /**
   * Posts the counts of hours before `until` as closed hours and corrections. A tenant whose own home is not complete
   * until then is posted as far as the home is.
   * @param page tenants after an id, at most `limit`
   * @returns the last tenant that was processed; undefined when none remains
   * @throws LeadershipLost
   */
  closeHours(until: Date, page: { after: string; limit: number }, epoch: bigint): Promise<string | undefined>
  /**
   * Returns the first month that is not closed for a tenant with a plan or usage in it; undefined when there is none.
   */
  firstOpenMonth(): Promise<Date | undefined>
  /**
   * Closes the month of each tenant whose usage is complete and whose earlier months are closed. Tenants with a plan but
   * without usage are included.
   * @returns the number of tenants
   * @throws LeadershipLost
   */
  closeMonth(month: Date, tenants: TenantRange, epoch: bigint): Promise<number>
  /**
   * Returns the start of the hours whose counters are stored. Counts of earlier hours, from sources that had completed
   * them, are repeats.
   */
  retainedFrom(): Promise<Date>
  /**
   * Removes posted counters of hours before `retainedFrom`, where their source had completed the hour.
   * @throws LeadershipLost
   */
  removePosted(tenants: TenantRange, epoch: bigint): Promise<void>
  /**
   * Moves the start of the hours whose counters are stored.
   * @throws LeadershipLost
   */
  retainFrom(hour: Date, epoch: bigint): Promise<void>
}
