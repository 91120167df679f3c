// A record that a caller sends, against its collection (specification, section 2.3). Pure.
import { restError } from '../rest-error.ts'
import { nearest } from '../rest-error.ts'
import type { Relation } from '../registry/catalog.ts'
import type { Field } from '../registry/collection.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const isoDateTime = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/
/** Characters of a `string`; documents belong into storage. */
export const longestString = 1_000_000

/** @throws RuntimeError naming the field: unknown, missing, or of the wrong type */
export function checkRecord(collection: Relation, record: unknown, kind: 'insert' | 'update', place = ''): Record<string, unknown> {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) {
    throw restError('BAD_REQUEST', { code: 'PGRST102', message: `${place === '' ? 'the body' : place} must be an object` })
  }
  const values = record as Record<string, unknown>
  for (const [name, value] of Object.entries(values)) {
    const column = collection.columns.get(name)
    if (column === undefined) {
      const meant = nearest(name, collection.columns.keys())
      throw restError('UNKNOWN_FIELD', {
        code: 'PGRST204',
        message: `collection "${collection.name}" has no field "${name}"`,
        ...(meant === undefined ? {} : { hint: `did you mean "${meant}"?` }),
      })
    }
    // What no schema describes Postgres alone checks.
    if (column.field !== undefined) checkValue(column.field, value, place)
  }
  if (kind === 'insert') {
    for (const { field } of collection.columns.values()) {
      if (field?.required === true && !hasDefault(collection, field) && (values[field.name] === undefined || values[field.name] === null)) {
        throw restError('MISSING_FIELD', { code: '23502', message: `field "${at(place, field.name)}" is required` })
      }
    }
  }
  return values
}

/** The owner is the caller, and a uuid key is made up, when they are left out. */
function hasDefault({ ownerField }: Relation, field: Field): boolean {
  return field.name === ownerField || (field.primary && field.type === 'uuid')
}

function checkValue(field: Field, value: unknown, place: string): void {
  const problem = problemOf(field, value)
  if (problem !== undefined) throw restError('INVALID_FIELD', { code: '22P02', message: `field "${at(place, field.name)}" ${problem}` })
}

function problemOf({ type, required, primary }: Field, value: unknown): string | undefined {
  if (value === null) return required || primary ? 'must not be null' : undefined
  switch (type) {
    case 'uuid':
      return typeof value === 'string' && uuid.test(value) ? undefined : 'must be a UUID'
    case 'string':
      if (typeof value !== 'string') return 'must be a string'
      if (value.length > longestString) return `is longer than ${longestString} characters`
      return textProblem(value)
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? undefined : 'must be a number'
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
    case 'datetime':
      return typeof value === 'string' && isoDateTime.test(value) && !Number.isNaN(Date.parse(value)) ? undefined : 'must be an ISO 8601 date and time'
    case 'json':
      if (typeof value !== 'object') return 'must be an object or an array'
      return textProblem(JSON.stringify(value))
  }
}

/** Postgres' texts hold any character but NUL, and only whole ones. */
function textProblem(text: string): string | undefined {
  if (text.includes('\0') || text.includes('\\u0000')) return 'must not hold a NUL character'
  return text.isWellFormed() && !/\\ud[89a-f]/i.test(text) ? undefined : 'holds half of a character'
}

function at(place: string, name: string): string {
  return place === '' ? name : `${place}.${name}`
}
