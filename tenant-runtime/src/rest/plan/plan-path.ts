// Finds the column of a path. Pure.
import { nearest } from '@tenantry/contract'
import type { RuntimeError } from '../../errors.ts'
import type { Column, Relation } from '../registry/catalog.ts'
import type { Path } from '../request/json-path.ts'
import { restError } from '../rest-error.ts'
import type { PlannedPath } from './plan.ts'

/**
 * Finds the column.
 * @throws RuntimeError INVALID_QUERY (42703) that names the unknown column
 */
export function planPath(relation: Relation, { column, steps }: Path): PlannedPath {
  const found = columnNamed(relation, column)
  if (found !== undefined) return { column: found, steps }
  throw noColumn(relation, column)
}

/** Makes the error of an unknown column. */
export function noColumn(relation: Relation, column: string): RuntimeError {
  const meant = nearest(column, [...relation.columns.keys(), ...relation.computed.keys()])
  return restError('INVALID_QUERY', {
    code: '42703',
    message: `column ${relation.name}.${column} does not exist`,
    ...(meant === undefined ? {} : { hint: `Perhaps you meant to reference the column "${relation.name}.${meant}".` }),
  })
}

/** Returns the column with this name, or the computed one. */
export function columnNamed({ columns, computed }: Relation, name: string): Column | undefined {
  return columns.get(name) ?? computed.get(name)
}
