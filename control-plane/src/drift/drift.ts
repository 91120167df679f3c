// The differences between what exists of a tenant and what should exist, and how each is repaired.
import type { Difference, Repair } from '../engines/index.ts'
import type { DriftPolicy } from '../tenants/index.ts'

/** A difference, and what its repair does; null if only everything can be repaired together. */
export type RepairableDifference = Difference & { repair: Repair | null }

export interface Drift {
  tenant_id: string
  policy: DriftPolicy
  /** ISO 8601, UTC. */
  observed_at: string
  drifted: boolean
  differences: RepairableDifference[]
}

/** The fields that a request names, and everything that their repair changes. */
export interface ChosenRepair {
  /** Each as `COMPONENT FIELD`. */
  fields: string[]
  /** Null: everything. */
  targets: Repair['targets'] | null
}

/** A name of one difference of a tenant. */
export type FieldName = Pick<Difference, 'component' | 'field'>

/**
 * Returns what the repair of the named fields changes. Pure.
 * @returns the first name that is not among the differences, or the repair
 */
export function chooseRepair(
  differences: readonly RepairableDifference[],
  names: readonly FieldName[],
): { unknown: FieldName } | ChosenRepair {
  const chosen: RepairableDifference[] = []
  for (const name of names) {
    const found = differences.find(({ component, field }) => component === name.component && field === name.field)
    if (found === undefined) return { unknown: name }
    chosen.push(found)
  }
  const fields = chosen.map(({ component, field }) => `${component} ${field}`)
  const repairs = chosen.map(({ repair }) => repair)
  const targets = repairs.some((repair) => repair === null) ? null : repairs.flatMap((repair) => repair?.targets ?? [])
  return { fields, targets }
}
