// Checks a value that an operator wrote against its schema, and names the exact field that is wrong. Pure.
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'

/**
 * Returns the value when it matches the schema.
 * @param where the text before the field's path, e.g. `prices.json: price_lists[0].`
 * @throws Error that names the field, its value and what is allowed
 */
export function checkForm<T extends TSchema>(schema: T, given: unknown, where: string): Static<T> {
  if (Value.Check(schema, given)) return given
  const [first] = Value.Errors(schema, given)
  if (first === undefined) throw new Error(`${where}the value does not match its schema`)
  const { keyword, instancePath, params, message } = first
  const missing = keyword === 'required' && 'requiredProperties' in params ? params.requiredProperties[0] : undefined
  const names = instancePath
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (missing !== undefined) throw new Error(`${where}${pathOf([...names, missing])} is missing`)
  if (keyword === 'boolean') throw new Error(`${where}${pathOf(names)} is not a known field`)
  throw new Error(
    `${where}${names.length === 0 ? 'the value' : pathOf(names)} is ${shown(valueAt(given, names))}, but ${message}`,
  )
}

/** Returns a value as errors show it, at most 100 characters. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'undefined' : JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 99)}…` : text
}

/** Returns a field's path, e.g. `price_lists[0].plans.Pro.fee`. */
function pathOf(names: readonly string[]): string {
  return names.map((name, index) => (/^\d+$/.test(name) ? `[${name}]` : index === 0 ? name : `.${name}`)).join('')
}

function valueAt(given: unknown, names: readonly string[]): unknown {
  return names.reduce<unknown>(
    (value, name) => (typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined),
    given,
  )
}
