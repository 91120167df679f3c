// A column, or a place in its JSON, as SQL. Pure.
import type { PlannedPath } from '../plan/plan.ts'
import { identifier } from './names.ts'
import type { Parameters } from './parameters.ts'

/** `(t0."data"->$1::text)`; the parts of rows and arrays are those that their JSON has. */
export function pathSql(table: string, { column, steps }: PlannedPath, parameters: Parameters): string {
  const whole = `${table}.${identifier(column.name)}`
  if (steps.length === 0) return whole
  const parts = steps.map(
    ({ arrow, key }) => `${arrow}${parameters.add(String(key))}::${typeof key === 'number' ? 'integer' : 'text'}`,
  )
  return `(${column.base === 'json' || column.base === 'jsonb' ? whole : `to_jsonb(${whole})`}${parts.join('')})`
}
