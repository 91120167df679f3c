// Conditions of a tenant's parts, each with the time at which it was observed. Pure.
import type { Step } from '../engines/index.ts'
import type { Condition } from '../tenants/index.ts'
import { publicMessage, reasonOf } from './not-ready.ts'

/** A part that a reconciliation observes. Other components write the other conditions. */
export type Part = 'Services' | 'Spread' | 'Home' | 'Database' | 'Quorum' | 'Replicating' | 'Runtime' | 'Route'

const parts: readonly Part[] = ['Services', 'Spread', 'Home', 'Database', 'Quorum', 'Replicating', 'Runtime', 'Route']

/** Conditions that an observation neither makes nor removes. */
export const lastingConditions: readonly Condition['type'][] = ['Loss', 'Sql', 'Backup', 'Spending']

export type ConditionState = Pick<Condition, 'status' | 'reason' | 'message'>

/** State of a part that was observed as specified. */
export const observed: ConditionState = { status: 'True', reason: 'Observed', message: '' }

/** State of a part that does not run for the tenant, so that nothing is known of it. */
export const halted: ConditionState = { status: 'Unknown', reason: 'Halted', message: '' }

export function failedBy(error: unknown): ConditionState {
  return { status: 'False', reason: reasonOf(error), message: publicMessage(error) }
}

/** Conditions of the parts that one reconciliation has observed. */
export type ObservedParts = ReadonlyMap<Part, Condition>

/**
 * Returns the tenant's conditions: new ones for observed parts, and earlier ones, with their times, for other parts and
 * the disk. The store retains `lastingConditions`.
 */
export function conditionsWith(before: readonly Condition[], seen: ObservedParts): Condition[] {
  const conditionOf = (part: Part) => seen.get(part) ?? before.find(({ type }) => type === part)
  return [
    ...parts.map(conditionOf).filter((condition) => condition !== undefined),
    ...before.filter(({ type }) => type === 'Disk'),
  ]
}

/** Returns the conditions with the drift. @returns undefined if they already report these steps */
export function driftConditions(
  before: readonly Condition[],
  steps: readonly Step[],
  at: Date,
): Condition[] | undefined {
  const known = before.find(({ type }) => type === 'Drift')
  const others = before.filter(({ type }) => type !== 'Drift' && !lastingConditions.includes(type))
  if (steps.length === 0) return known === undefined ? undefined : others
  const repairs = [...new Set(steps.map((step) => step.do))].join(', ')
  const message = `The services differ from their specification. Steps that repair them: ${repairs}.`
  if (known?.message === message) return undefined
  return [...others, { type: 'Drift', status: 'True', reason: 'Reported', message, observed_at: at.toISOString() }]
}

/** Returns the lasting condition that tables of the service were missing in the home and were created again, empty. */
export function lossCondition(lost: readonly string[], at: Date): Condition {
  const message = `Tables of the service were missing and were created again without their rows: ${lost.join(', ')}.`
  return { type: 'Loss', status: 'True', reason: 'TablesRecreated', message, observed_at: at.toISOString() }
}
