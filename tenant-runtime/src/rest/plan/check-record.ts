// A record that a caller sends, against its collection (specification, section 2.3). Pure.
import { didYouMean, restError } from '../rest-error.ts'
import { hasDefault, errorOf } from '../registry/check-value.ts'
import type { Relation } from '../registry/catalog.ts'
import type { Field } from '../registry/collection.ts'

/** @throws RuntimeError naming the field: unknown, missing, of the wrong type, or outside of what it allows */
export function checkRecord(
  collection: Relation,
  record: unknown,
  kind: 'insert' | 'update',
  location = '',
): Record<string, unknown> {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) {
    throw restError('BAD_REQUEST', {
      code: 'PGRST102',
      message: `${location === '' ? 'the body' : location} must be an object`,
    })
  }
  const values = record as Record<string, unknown>
  for (const [name, value] of Object.entries(values)) {
    const column = collection.columns.get(name)
    if (column === undefined) throw unknownField(collection, name)
    // What no schema describes Postgres alone checks.
    if (column.field !== undefined) checkValue(column.field, value, location)
  }
  if (kind === 'insert') {
    for (const { field } of collection.columns.values()) {
      if (field !== undefined && isMissing(collection, field, values)) {
        throw restError('MISSING_FIELD', { code: '23502', message: `field "${at(location, field.name)}" is required` })
      }
    }
  }
  return values
}

function isMissing({ ownerField }: Relation, field: Field, values: Record<string, unknown>): boolean {
  if (!field.required || (values[field.name] ?? null) !== null) return false
  return !hasDefault(ownerField, field)
}

function checkValue(field: Field, value: unknown, location: string): void {
  const error = errorOf(field, value)
  if (error === undefined) return
  const [code, message] = error
  throw restError('INVALID_FIELD', { code, message: `field "${at(location, field.name)}" ${message}` })
}

function at(location: string, name: string): string {
  return location === '' ? name : `${location}.${name}`
}

/** Of what is written. */
export function unknownField({ name, columns }: Relation, field: string) {
  return restError('UNKNOWN_FIELD', {
    code: 'PGRST204',
    message: `collection "${name}" has no field "${field}"`,
    ...didYouMean(field, columns.keys()),
  })
}
