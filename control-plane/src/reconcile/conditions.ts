// What is said of a tenant's parts, each with the time it was seen. Pure.
import type { Step } from '../engines/index.ts'
import type { Condition } from '../tenants/index.ts'
import { publicMessage, reasonOf } from './not-ready.ts'

/** A part that a reconciliation looks at. `Disk`, `Drift` and `Loss` are said by others. */
export type Part = 'Services' | 'Home' | 'Database' | 'Runtime' | 'Route'

const parts: readonly Part[] = ['Services', 'Home', 'Database', 'Runtime', 'Route']

export type Reported = Pick<Condition, 'status' | 'reason' | 'message'>

/** It was seen to be as it was asked for. */
export const observed: Reported = { status: 'True', reason: 'Observed', message: '' }

/** Nothing can be said of what does not run for the tenant. */
export const halted: Reported = { status: 'Unknown', reason: 'Halted', message: '' }

export function failedBy(error: unknown): Reported {
  return { status: 'False', reason: reasonOf(error), message: publicMessage(error) }
}

/** What was seen of parts since some time. A part that nobody looked at is not in it. */
export type Seen = ReadonlyMap<Part, Condition>

/**
 * What is said of the tenant from now on: what was seen, and of other parts what was said of them before, with its time. So is
 * what was said of the disk: nobody has looked at that. The store keeps `Loss`.
 */
export function conditionsWith(before: readonly Condition[], seen: Seen): Condition[] {
  const reportedOf = (part: Part) => seen.get(part) ?? before.find(({ type }) => type === part)
  return [
    ...parts.map(reportedOf).filter((reported) => reported !== undefined),
    ...before.filter(({ type }) => type === 'Disk'),
  ]
}

/** @returns undefined when they say already what the steps do */
export function driftConditions(
  before: readonly Condition[],
  steps: readonly Step[],
  at: Date,
): Condition[] | undefined {
  const known = before.find(({ type }) => type === 'Drift')
  const others = before.filter(({ type }) => type !== 'Drift' && type !== 'Loss')
  if (steps.length === 0) return known === undefined ? undefined : others
  const message = `differs from what was asked for; to repair it: ${[...new Set(steps.map((step) => step.do))].join(', ')}`
  if (known?.message === message) return undefined
  return [...others, { type: 'Drift', status: 'True', reason: 'Reported', message, observed_at: at.toISOString() }]
}

/** That tables of the service were missing in the home and were made again, empty. It stays with the tenant. */
export function lossCondition(lost: readonly string[], at: Date): Condition {
  const message = `tables of the service were missing and were made again, without their rows: ${lost.join(', ')}`
  return { type: 'Loss', status: 'True', reason: 'TablesRecreated', message, observed_at: at.toISOString() }
}
