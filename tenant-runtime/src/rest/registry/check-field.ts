// Checks one field of a schema that a caller wrote. The error names the invalid attribute. Pure.
import { RuntimeError } from '../../errors.ts'
import { maxStringLength, valueViolation, isGenerated } from './check-value.ts'
import { deletions, fieldTypes, generatedDefaults, type Field, type Reference } from './collection.ts'

/** The names of every table's system columns, and names that JavaScript objects cannot have. */
const reservedFields = new Set(['tenant_id', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid', '__proto__'])
const fieldName = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
/** Names with `pg_` are reserved by Postgres. */
export const collectionName = /^(?!pg_)[a-z][a-z0-9_]{0,62}$/
const maxValues = 200
const maxDefaultLength = 10_000

export function isFieldName(value: unknown): value is string {
  return typeof value === 'string' && fieldName.test(value) && !reservedFields.has(value)
}

/**
 * Checks a field.
 * @throws RuntimeError INVALID_SCHEMA with the location
 */
export function checkField(value: unknown, location: string): Field {
  const {
    name,
    type,
    primary = false,
    required = false,
    unique = false,
    index = false,
    max_length: maxLength,
    minimum,
    maximum,
    default: initial,
    enum: allowed,
    references,
    ...others
  } = membersOf(value, location)
  rejectOthers(others, location)
  if (typeof name !== 'string' || !fieldName.test(name))
    throw invalid(`${location}.name`, 'must be 1 to 63 letters, digits and underscores')
  if (reservedFields.has(name)) throw invalid(`${location}.name`, `must not be the reserved name "${name}"`)
  const known = fieldTypes.find((candidate) => candidate === type)
  if (known === undefined) throw invalid(`${location}.type`, `must be one of ${fieldTypes.join(', ')}`)
  for (const [attribute, given] of Object.entries({ primary, required, unique, index })) {
    if (typeof given !== 'boolean') throw invalid(`${location}.${attribute}`, 'must be true or false')
    const isKey = given && (attribute === 'primary' || attribute === 'unique')
    if (isKey && (known === 'json' || known === 'boolean'))
      throw invalid(`${location}.${attribute}`, `is not allowed for a field of type ${known}`)
  }
  const field: Field = {
    name,
    type: known,
    primary: primary === true,
    required: required === true,
    // A primary field is unique, and has its index.
    ...(unique === true && primary === false ? { unique: true } : {}),
    ...(index === true && unique === false && primary === false ? { index: true } : {}),
    ...checkMaxLength(known, maxLength, `${location}.max_length`),
    ...checkRange(known, minimum, maximum, location),
    ...(allowed === undefined ? {} : { enum: listed(known, allowed, `${location}.enum`) }),
    ...(references === undefined ? {} : { references: checkReference(known, references, `${location}.references`) }),
  }
  for (const [n, one] of (field.enum ?? []).entries())
    rejectInvalid({ ...field, required: true }, one, `${location}.enum[${n}]`)
  if (field.references?.onDelete === 'set null' && (field.required || field.primary)) {
    throw invalid(
      `${location}.references.on_delete`,
      `must not be "set null" for a ${field.primary ? 'primary' : 'required'} field`,
    )
  }
  return initial === undefined ? field : checkDefault({ ...field, default: initial }, `${location}.default`)
}

function checkMaxLength(type: Field['type'], value: unknown, location: string): Pick<Field, 'maxLength'> {
  if (value === undefined) return {}
  if (type !== 'string') throw invalid(location, 'is only allowed for fields of type string')
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > maxStringLength) {
    throw invalid(location, `must be a whole number from 1 to ${maxStringLength}`)
  }
  return { maxLength: value }
}

function checkRange(
  type: Field['type'],
  minimum: unknown,
  maximum: unknown,
  location: string,
): Pick<Field, 'minimum' | 'maximum'> {
  for (const [attribute, value] of Object.entries({ minimum, maximum })) {
    if (value === undefined) continue
    if (type !== 'number') throw invalid(`${location}.${attribute}`, 'is only allowed for fields of type number')
    if (typeof value !== 'number' || !Number.isFinite(value))
      throw invalid(`${location}.${attribute}`, 'must be a number')
  }
  if (typeof minimum === 'number' && typeof maximum === 'number' && minimum > maximum)
    throw invalid(`${location}.minimum`, 'is larger than the maximum')
  return { ...(typeof minimum === 'number' ? { minimum } : {}), ...(typeof maximum === 'number' ? { maximum } : {}) }
}

function listed(type: Field['type'], value: unknown, location: string): (string | number)[] {
  if (type !== 'string' && type !== 'number')
    throw invalid(location, 'is only allowed for fields of type string or number')
  if (!Array.isArray(value) || value.length === 0 || value.length > maxValues)
    throw invalid(location, `must be an array of 1 to ${maxValues} values`)
  const values = value.map((one: unknown, n) => {
    if (typeof one !== type) throw invalid(`${location}[${n}]`, `must be a ${type}`)
    return typeof one === 'number' ? one : String(one)
  })
  const twice = values.find((one, n) => values.indexOf(one) !== n)
  if (twice !== undefined) throw invalid(location, `has ${JSON.stringify(twice)} twice`)
  if (JSON.stringify(values).length > maxDefaultLength)
    throw invalid(location, `is longer than ${maxDefaultLength} characters`)
  return values
}

/** Checks a reference: `"authors"`, or `{collection, field?, on_delete?}`. */
function checkReference(type: Field['type'], value: unknown, location: string): Reference {
  if (type === 'json' || type === 'boolean') throw invalid(location, `is not allowed for a field of type ${type}`)
  const {
    collection,
    field,
    on_delete: onDelete = 'restrict',
    ...others
  } = typeof value === 'string' ? { collection: value } : membersOf(value, location)
  rejectOthers(others, location)
  if (typeof collection !== 'string' || !collectionName.test(collection))
    throw invalid(typeof value === 'string' ? location : `${location}.collection`, 'must name a collection')
  if (field !== undefined && !isFieldName(field))
    throw invalid(`${location}.field`, 'must name a field of the collection')
  const known = deletions.find((candidate) => candidate === onDelete)
  if (known === undefined) throw invalid(`${location}.on_delete`, `must be one of ${deletions.join(', ')}`)
  return { collection, ...(field === undefined ? {} : { field }), onDelete: known }
}

function checkDefault(field: Field, location: string): Field {
  if (isGenerated(field)) return field
  if (field.default === null) throw invalid(location, 'must not be null, which is already the value without a default')
  const generated = generatedDefaults[field.type]
  const violation = valueViolation(field, field.default)
  if (violation !== undefined)
    throw invalid(
      location,
      `${violation[1]}${generated === undefined || violation[0] !== '22P02' ? '' : `, or "${generated}"`}`,
    )
  if (JSON.stringify(field.default).length > maxDefaultLength)
    throw invalid(location, `is longer than ${maxDefaultLength} characters`)
  return field
}

function rejectInvalid(field: Field, value: unknown, location: string): void {
  const violation = valueViolation(field, value)
  if (violation !== undefined) throw invalid(location, violation[1])
}

export function membersOf(value: unknown, location: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(location, 'must be an object')
  return Object.fromEntries(Object.entries(value))
}

export function rejectOthers(others: object, location: string): void {
  const [first] = Object.keys(others)
  if (first !== undefined) throw invalid(`${location}.${first}`, 'is unknown')
}

export function invalid(location: string, reason: string): RuntimeError {
  return new RuntimeError('INVALID_SCHEMA', `${location} ${reason}.`)
}
