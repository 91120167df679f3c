// Isolation models, and the choice of a plan's model in a region. Pure.

/** Isolation models, the weakest first (specification, section 1). */
export const isolationModels = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'] as const
/** An isolation model, which determines the resources that a tenant does not share (specification, section 1). */
export type Isolation = (typeof isolationModels)[number]

/** A model with services of the tenant's own. */
export type OwnIsolation = Exclude<Isolation, 'schema-per-tenant'>

/**
 * Returns the plan's model or, if the region does not support it, the strongest that it supports; undefined if there is
 * none.
 */
export function isolationInRegion(ofPlan: Isolation, possible: readonly Isolation[]): Isolation | undefined {
  return possible.includes(ofPlan) ? ofPlan : possible.at(-1)
}

/** Compares two models. @returns a negative number if `one` is weaker than `other` */
export function compareIsolation(one: Isolation, other: Isolation): number {
  return isolationModels.indexOf(one) - isolationModels.indexOf(other)
}
