// Which plan a tenant was under, and when: what prices and quotas of past times go by.

/** Half open, `since` ≤ t < `until`; exact to the millisecond. */
export interface PlanPeriod {
  plan: string
  /** The tenant's isolation model, where it was weaker than what the plan has in the tenant's region; absent otherwise. */
  weakerIsolation?: string
  since: Date
  until: Date
}

/** Which plan each tenant had when, from which invoices share out a month. */
export interface PlanHistory {
  /**
   * The tenant's periods within [`from`, `to`), cut to it, oldest first; none is empty and no two overlap. Before the
   * tenant was created and from the request of its deletion on there is none. Known of tenants that are gone, too.
   */
  periods(tenantId: string, from: Date, to: Date): Promise<PlanPeriod[]>
  /** As `periods`, of many tenants; those without any are left out. */
  periodsOf(tenantIds: readonly string[], from: Date, to: Date): Promise<ReadonlyMap<string, PlanPeriod[]>>
  /** Ids above `after`, in order, of tenants that had a period within [`from`, `to`): at most `limit`. */
  tenants(from: Date, to: Date, after: string, limit: number): Promise<string[]>
}
