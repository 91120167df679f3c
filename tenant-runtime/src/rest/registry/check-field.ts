// One field of a schema that somebody wrote: its attributes, or the error that says which one is wrong. Pure.
import { RuntimeError } from '../../errors.ts'
import { longestString, problemOf, isGenerated } from './check-value.ts'
import { deletions, fieldTypes, generatedDefaults, type Field, type Reference } from './collection.ts'

/** Every table's own columns, and names that are none to a JavaScript object. */
const reservedFields = new Set(['tenant_id', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid', '__proto__'])
const fieldName = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
/** `pg_` is Postgres' own. */
export const collectionName = /^(?!pg_)[a-z][a-z0-9_]{0,62}$/
const mostValues = 200
const longestDefault = 10_000

export function isFieldName(value: unknown): value is string {
  return typeof value === 'string' && fieldName.test(value) && !reservedFields.has(value)
}

/** @throws RuntimeError INVALID_SCHEMA with the place */
export function checkField(value: unknown, place: string): Field {
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
  } = membersOf(value, place)
  refuseOthers(others, place)
  if (typeof name !== 'string' || !fieldName.test(name))
    throw invalid(`${place}.name`, 'must be 1 to 63 letters, digits and underscores')
  if (reservedFields.has(name)) throw invalid(`${place}.name`, `"${name}" is reserved`)
  const known = fieldTypes.find((candidate) => candidate === type)
  if (known === undefined) throw invalid(`${place}.type`, `must be one of ${fieldTypes.join(', ')}`)
  for (const [attribute, given] of Object.entries({ primary, required, unique, index })) {
    if (typeof given !== 'boolean') throw invalid(`${place}.${attribute}`, 'must be true or false')
    const isKey = given && (attribute === 'primary' || attribute === 'unique')
    if (isKey && (known === 'json' || known === 'boolean'))
      throw invalid(`${place}.${attribute}`, `a ${known} field can't be ${attribute}`)
  }
  const field: Field = {
    name,
    type: known,
    primary: primary === true,
    required: required === true,
    // A primary field is unique, and has its index.
    ...(unique === true && primary === false ? { unique: true } : {}),
    ...(index === true && unique === false && primary === false ? { index: true } : {}),
    ...checkMaxLength(known, maxLength, `${place}.max_length`),
    ...checkRange(known, minimum, maximum, place),
    ...(allowed === undefined ? {} : { enum: listed(known, allowed, `${place}.enum`) }),
    ...(references === undefined ? {} : { references: checkReference(known, references, `${place}.references`) }),
  }
  for (const [n, one] of (field.enum ?? []).entries())
    refuseProblem({ ...field, required: true }, one, `${place}.enum[${n}]`)
  if (field.references?.onDelete === 'set null' && (field.required || field.primary)) {
    throw invalid(
      `${place}.references.on_delete`,
      `"set null" is not for a field that is ${field.primary ? 'primary' : 'required'}`,
    )
  }
  return initial === undefined ? field : checkDefault({ ...field, default: initial }, `${place}.default`)
}

function checkMaxLength(type: Field['type'], value: unknown, place: string): Pick<Field, 'maxLength'> {
  if (value === undefined) return {}
  if (type !== 'string') throw invalid(place, 'is for fields of type string')
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > longestString) {
    throw invalid(place, `must be a whole number from 1 to ${longestString}`)
  }
  return { maxLength: value }
}

function checkRange(
  type: Field['type'],
  minimum: unknown,
  maximum: unknown,
  place: string,
): Pick<Field, 'minimum' | 'maximum'> {
  for (const [attribute, value] of Object.entries({ minimum, maximum })) {
    if (value === undefined) continue
    if (type !== 'number') throw invalid(`${place}.${attribute}`, 'is for fields of type number')
    if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(`${place}.${attribute}`, 'must be a number')
  }
  if (typeof minimum === 'number' && typeof maximum === 'number' && minimum > maximum)
    throw invalid(`${place}.minimum`, 'is larger than the maximum')
  return { ...(typeof minimum === 'number' ? { minimum } : {}), ...(typeof maximum === 'number' ? { maximum } : {}) }
}

function listed(type: Field['type'], value: unknown, place: string): (string | number)[] {
  if (type !== 'string' && type !== 'number') throw invalid(place, 'is for fields of type string or number')
  if (!Array.isArray(value) || value.length === 0 || value.length > mostValues)
    throw invalid(place, `must be an array of 1 to ${mostValues} values`)
  const values = value.map((one: unknown, n) => {
    if (typeof one !== type) throw invalid(`${place}[${n}]`, `must be a ${type}`)
    return typeof one === 'number' ? one : String(one)
  })
  const twice = values.find((one, n) => values.indexOf(one) !== n)
  if (twice !== undefined) throw invalid(place, `has ${JSON.stringify(twice)} twice`)
  if (JSON.stringify(values).length > longestDefault)
    throw invalid(place, `is longer than ${longestDefault} characters`)
  return values
}

/** `"authors"`, or `{collection, field?, on_delete?}`. */
function checkReference(type: Field['type'], value: unknown, place: string): Reference {
  if (type === 'json' || type === 'boolean') throw invalid(place, `a ${type} field can't refer to a record`)
  const {
    collection,
    field,
    on_delete: onDelete = 'restrict',
    ...others
  } = typeof value === 'string' ? { collection: value } : membersOf(value, place)
  refuseOthers(others, place)
  if (typeof collection !== 'string' || !collectionName.test(collection))
    throw invalid(typeof value === 'string' ? place : `${place}.collection`, 'must name a collection')
  if (field !== undefined && !isFieldName(field)) throw invalid(`${place}.field`, 'must name a field of the collection')
  const known = deletions.find((candidate) => candidate === onDelete)
  if (known === undefined) throw invalid(`${place}.on_delete`, `must be one of ${deletions.join(', ')}`)
  return { collection, ...(field === undefined ? {} : { field }), onDelete: known }
}

function checkDefault(field: Field, place: string): Field {
  if (isGenerated(field)) return field
  if (field.default === null) throw invalid(place, 'must not be null: without a default, that is what a field gets')
  const generated = generatedDefaults[field.type]
  const problem = problemOf(field, field.default)
  if (problem !== undefined)
    throw invalid(
      place,
      `${problem[1]}${generated === undefined || problem[0] !== '22P02' ? '' : `, or "${generated}"`}`,
    )
  if (JSON.stringify(field.default).length > longestDefault)
    throw invalid(place, `is longer than ${longestDefault} characters`)
  return field
}

function refuseProblem(field: Field, value: unknown, place: string): void {
  const problem = problemOf(field, value)
  if (problem !== undefined) throw invalid(place, problem[1])
}

export function membersOf(value: unknown, place: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(place, 'must be an object')
  return Object.fromEntries(Object.entries(value))
}

export function refuseOthers(others: object, place: string): void {
  const [first] = Object.keys(others)
  if (first !== undefined) throw invalid(`${place}.${first}`, 'is not known')
}

export function invalid(place: string, problem: string): RuntimeError {
  return new RuntimeError('INVALID_SCHEMA', `${place} ${problem}`)
}
