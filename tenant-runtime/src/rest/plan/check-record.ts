// Checks a record from a caller against its collection (specification, section 2.3). Pure.
import { didYouMean, restError } from '../rest-error.ts'
import { hasDefault, valueViolation } from '../registry/check-value.ts'
import type { Relation } from '../registry/catalog.ts'
import type { Field } from '../registry/collection.ts'

/**
 * Checks a record.
 * @throws RuntimeError that names the field: unknown, missing, of the wrong type, or outside of its limits
 */
export function checkRecord(
  collection: Relation,
  record: unknown,
  kind: 'insert' | 'update',
  location = '',
): Record<string, unknown> {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) {
    throw restError('BAD_REQUEST', {
      code: 'PGRST102',
      message: `${location === '' ? 'The body' : location} must be an object.`,
    })
  }
  const values = record as Record<string, unknown>
  for (const [name, value] of Object.entries(values)) {
    const column = collection.columns.get(name)
    if (column === undefined) throw unknownField(collection, name)
    // Only Postgres checks columns that no schema describes.
    if (column.field !== undefined) checkValue(column.field, value, location)
  }
  if (kind === 'insert') {
    for (const { field } of collection.columns.values()) {
      if (field !== undefined && isMissing(collection, field, values)) {
        throw restError('MISSING_FIELD', {
          code: '23502',
          message: `Field "${at(location, field.name)}" is required.`,
        })
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
  const violation = valueViolation(field, value)
  if (violation === undefined) return
  const [code, message] = violation
  throw restError('INVALID_FIELD', { code, message: `Field "${at(location, field.name)}" ${message}.` })
}

function at(location: string, name: string): string {
  return location === '' ? name : `${location}.${name}`
}

/** Makes the error of an unknown field in a written record. */
export function unknownField({ name, columns }: Relation, field: string) {
  return restError('UNKNOWN_FIELD', {
    code: 'PGRST204',
    message: `Could not find the '${field}' column of '${name}' in the schema cache`,
    ...didYouMean(field, columns.keys()),
  })
}
