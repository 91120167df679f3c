// The history of tenants' plans, which determines the prices and quotas of past times.

/** A period of one plan, half open: `since` ≤ t < `until`; exact to the millisecond. */
export interface PlanPeriod {
  plan: string
  /**
   * The tenant's isolation model, where it was weaker than the plan's model in the tenant's region; absent otherwise.
   */
  weakerIsolation?: string
  since: Date
  until: Date
}

/** Reads the plan periods of tenants, which divide a month on invoices. */
export interface PlanHistory {
  /**
   * Returns the tenant's periods within [`from`, `to`), limited to it, oldest first. None is empty and no two overlap.
   * There is none before the tenant's creation or after the request for its deletion. Deleted tenants have theirs too.
   */
  periods(tenantId: string, from: Date, to: Date): Promise<PlanPeriod[]>
  /** Returns `periods` for many tenants. Those without any are left out. */
  periodsOf(tenantIds: readonly string[], from: Date, to: Date): Promise<ReadonlyMap<string, PlanPeriod[]>>
  /** Returns at most `limit` ids above `after`, in order, of tenants with a period within [`from`, `to`). */
  tenants(from: Date, to: Date, after: string, limit: number): Promise<string[]>
}
