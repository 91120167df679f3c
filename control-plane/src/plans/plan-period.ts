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
