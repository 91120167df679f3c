// Checks a value against its field (specification, section 2.3), and describes the violation. Pure.
import { generatedDefaults, type Field } from './collection.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const isoDateTime = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/

/**
 * The maximum number of characters (Unicode code points) of a `string` whose field sets no other limit. Documents belong in
 * storage.
 */
export const maxStringLength = 1_000_000

/** A violation with Postgres' code for it: the value is not of the type, or is outside of the field's limits. */
type ValueViolation = readonly [code: '22P02' | '23514', reason: string]

export function valueViolation(field: Field, value: unknown): ValueViolation | undefined {
  if (value === null) return field.required || field.primary ? ['22P02', 'must not be null'] : undefined
  const wrong = typeViolation(field, value)
  if (wrong !== undefined) return ['22P02', wrong]
  const outside = boundsViolation(field, value)
  return outside === undefined ? undefined : ['23514', outside]
}

function typeViolation({ type }: Field, value: unknown): string | undefined {
  switch (type) {
    case 'uuid':
      return typeof value === 'string' && uuid.test(value) ? undefined : 'must be a UUID'
    case 'string':
      return typeof value === 'string' ? textViolation(value) : 'must be a string'
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? undefined : 'must be a number'
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
    case 'datetime':
      return typeof value === 'string' && isoDateTime.test(value) && !Number.isNaN(Date.parse(value))
        ? undefined
        : 'must be an ISO 8601 date and time'
    case 'json':
      return typeof value === 'object' ? jsonViolation(value) : 'must be an object or an array'
  }
}

function boundsViolation(field: Field, value: unknown): string | undefined {
  if (typeof value === 'string' && field.type === 'string' && isLonger(value, field.maxLength ?? maxStringLength))
    return lengthRule(field)
  if (typeof value === 'number' && (value < (field.minimum ?? -Infinity) || value > (field.maximum ?? Infinity)))
    return rangeRule(field)
  if (field.enum !== undefined && !field.enum.some((allowed) => allowed === value)) return enumRule(field)
  return undefined
}

function isLonger(text: string, max: number): boolean {
  // No text has more characters than UTF-16 units.
  if (text.length <= max) return false
  let characters = 0
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) characters++
  return characters > max
}

/** Postgres' texts may have any character but NUL, and no unpaired surrogates. */
function textViolation(text: string): string | undefined {
  if (text.includes('\0')) return 'must not have a NUL character'
  return text.isWellFormed() ? undefined : 'has an unpaired surrogate'
}

function jsonViolation(value: unknown): string | undefined {
  if (typeof value === 'string') return textViolation(value)
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const error = textViolation(name) ?? jsonViolation(member)
    if (error !== undefined) return error
  }
  return undefined
}

export function lengthRule({ maxLength = maxStringLength }: Field): string {
  return `is longer than ${maxLength} characters`
}

export function rangeRule({ type, minimum, maximum }: Field): string {
  if (type === 'datetime') return 'must be a date and time that is not infinite'
  if (minimum !== undefined && maximum !== undefined) return `must be between ${minimum} and ${maximum}`
  if (minimum !== undefined) return `must be at least ${minimum}`
  return maximum === undefined ? 'must be a number' : `must be at most ${maximum}`
}

export function enumRule({ enum: allowed = [] }: Field): string {
  const shown = allowed
    .slice(0, 20)
    .map((value) => JSON.stringify(value))
    .join(', ')
  return `must be one of ${shown}${allowed.length > 20 ? ', …' : ''}`
}

/** Whether a record without the field receives a value: the owner is the caller, and a UUID key is generated. */
export function hasDefault(ownerField: string | undefined, field: Field): boolean {
  return field.default !== undefined || field.name === ownerField || (field.primary && field.type === 'uuid')
}

export function isGenerated(field: Field): boolean {
  return field.default !== undefined && field.default === generatedDefaults[field.type]
}
