// The condition of rows that come after a given row in an order, as SQL. Pure.
import type { PlannedOrder } from '../plan/plan.ts'
import type { Parameters } from './parameters.ts'
import { pathSql } from './path-sql.ts'

/** Returns a condition that is true for rows after one that has these values in the order. */
export function afterSql(
  terms: readonly PlannedOrder[],
  values: readonly (string | null)[],
  table: string,
  parameters: Parameters,
): string {
  const columns = terms.map(({ path }) => pathSql(table, path, parameters))
  const isSimple = terms.every(
    ({ path: { column, steps }, direction, nulls }) =>
      steps.length === 0 && !column.nullable && direction === terms[0]?.direction && nulls === undefined,
  )
  // One comparison, which can use an index on these columns.
  if (isSimple) {
    const bounds = values.map((value) => parameters.add(value))
    return `(${columns.join(', ')}) ${terms[0]?.direction === 'desc' ? '<' : '>'} (${bounds.join(', ')})`
  }
  const same = (n: number) => {
    const value = values[n] ?? null
    return value === null ? `${columns[n] ?? ''} is null` : `${columns[n] ?? ''} = ${parameters.add(value)}`
  }
  const alternatives = terms.flatMap((term, n) => {
    const after = afterTermSql(columns[n] ?? '', values[n] ?? null, term, parameters)
    return after === undefined
      ? []
      : [`(${[...terms.slice(0, n).map((_, before) => same(before)), after].join(' and ')})`]
  })
  return alternatives.length === 0 ? 'false' : `(${alternatives.join(' or ')})`
}

function afterTermSql(
  column: string,
  value: string | null,
  { direction, nulls = direction === 'asc' ? 'last' : 'first' }: PlannedOrder,
  parameters: Parameters,
): string | undefined {
  if (value === null) return nulls === 'first' ? `${column} is not null` : undefined
  const further = `${column} ${direction === 'asc' ? '>' : '<'} ${parameters.add(value)}`
  return nulls === 'last' ? `(${further} or ${column} is null)` : further
}
