// A column or a path in its JSON as SQL. Pure.
import type { PlannedPath } from '../plan/plan.ts'
import { identifier } from './names.ts'
import type { Parameters } from './parameters.ts'

/** Returns SQL such as `(t0."data"->$1::text)`. Rows and arrays have the members of their JSON. */
export function pathSql(table: string, { column, steps }: PlannedPath, parameters: Parameters): string {
  const whole = `${table}.${identifier(column.computed?.routine ?? column.name)}`
  if (steps.length === 0) return whole
  const parts = steps.map(
    ({ arrow, key }) => `${arrow}${parameters.add(String(key))}::${typeof key === 'number' ? 'integer' : 'text'}`,
  )
  return `(${column.base === 'json' || column.base === 'jsonb' ? whole : `to_jsonb(${whole})`}${parts.join('')})`
}
