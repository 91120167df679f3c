// The rows of a change or a call that a WITH retains, with what functions of the tenant compute from them. Outside the WITH
// they are no longer rows of their relation, which these functions take. Pure.
import { computedFields, needsRow } from '../plan/plan-computed.ts'
import type { ReadPlan } from '../plan/plan.ts'
import { identifier } from './names.ts'
import type { Source } from './select-sql.ts'

interface RetainedRows {
  /** SQL of the further columns of the WITH. */
  columns: string[]
  /** Returns the source that reads them. */
  source: (name: string) => Source
}

/**
 * Returns what the WITH retains in addition to the own columns of its relation.
 * @param row the name of the relation's row inside the WITH
 */
export function retainedRows(plan: ReadPlan, row: string): RetainedRows {
  const columns = computedFields(plan).map(({ name, computed }) => `${row}.${identifier(computed?.routine ?? name)}`)
  if (!needsRow(plan)) return { columns, source: (from) => ({ from }) }
  let whole = 'row'
  while (plan.relation.columns.has(whole) || plan.relation.computed.has(whole)) whole += '_'
  return {
    columns: [...columns, `${row} as ${identifier(whole)}`],
    source: (from) => ({ from, row: (table) => `${table}.${identifier(whole)}` }),
  }
}
