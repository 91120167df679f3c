// A column, or a place in its JSON, as SQL. Pure.
import type { PlannedPath } from '../plan/plan.ts'
import { identifier } from './names.ts'
import type { Parameters } from './parameters.ts'

/** `t0."data"->$1::text` */
export function pathSql(table: string, { column, steps }: PlannedPath, parameters: Parameters): string {
  const parts = steps.map(({ arrow, key }) => `${arrow}${parameters.add(String(key))}::${typeof key === 'number' ? 'integer' : 'text'}`)
  return parts.length === 0 ? `${table}.${identifier(column.name)}` : `(${table}.${identifier(column.name)}${parts.join('')})`
}
