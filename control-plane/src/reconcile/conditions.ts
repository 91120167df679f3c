// What is said of a tenant, with the time it was seen. Pure.
import { type Step, EngineError } from '../engines/index.ts'
import { HomeError } from '../homes/index.ts'
import type { Condition } from '../tenants/index.ts'
import type { Snapshot } from './reconcile-store.ts'

type Said = Pick<Condition, 'status' | 'reason' | 'message'>

const shared: Condition['type'][] = ['Home', 'Database', 'Runtime', 'Route']

/** The same of all its parts, or of those named. What was said of its disk stays: nobody has looked at that. The store keeps `Loss`. */
export function conditionsOf(
  snapshot: Pick<Snapshot, 'isolation' | 'conditions'>,
  at: Date,
  said: Said,
  types?: Condition['type'][],
): Condition[] {
  const disk = snapshot.conditions.filter(({ type }) => type === 'Disk')
  const all: Condition['type'][] = snapshot.isolation === 'schema-per-tenant' ? shared : ['Services', ...shared]
  return [...(types ?? all).map((type) => ({ type, ...said, observed_at: at.toISOString() })), ...disk]
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
  const message = `differs from what was asked for; to mend it: ${[...new Set(steps.map((step) => step.do))].join(', ')}`
  if (known?.message === message) return undefined
  return [...others, { type: 'Drift', status: 'True', reason: 'Reported', message, observed_at: at.toISOString() }]
}

/** That tables of the service were missing in the home and were made again, empty. It stays with the tenant. */
export function lossCondition(lost: readonly string[], at: Date): Condition {
  const message = `tables of the service were missing and were made again, without their rows: ${lost.join(', ')}`
  return { type: 'Loss', status: 'True', reason: 'TablesRecreated', message, observed_at: at.toISOString() }
}

/** `VOLUME_MISSING` → `VolumeMissing`. */
export function reasonOf(error: unknown): string {
  if (error instanceof HomeError) return error.reason
  if (!(error instanceof EngineError)) return 'Error'
  return error.code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
