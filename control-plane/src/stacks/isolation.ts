// Isolation models, and which one a plan has in a region. Pure.

/** The weakest first (specification, section 1). */
export const isolationModels = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'] as const
/** An isolation model: what a tenant has of its own (specification, section 1). */
export type Isolation = (typeof isolationModels)[number]

/** The plan's own model or, where the region cannot provide it, the strongest that it can; undefined where it can provide none. */
export function isolationInRegion(ofPlan: Isolation, possible: readonly Isolation[]): Isolation | undefined {
  return possible.includes(ofPlan) ? ofPlan : possible.at(-1)
}

/** Below zero when `one` is weaker than `other`. */
export function compareIsolation(one: Isolation, other: Isolation): number {
  return isolationModels.indexOf(one) - isolationModels.indexOf(other)
}
