// Checks a value that an operator wrote against its form, and names the exact field that is wrong. Pure.
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'

/**
 * Returns the value when it has the form.
 * @param where text before the field's path, e.g. `prices.json: price_lists[0].`
 * @throws Error that names the field, its value and what is allowed
 */
export function checkForm<T extends TSchema>(schema: T, given: unknown, where: string): Static<T> {
  if (Value.Check(schema, given)) return given
  const [first] = Value.Errors(schema, given)
  if (first === undefined) throw new Error(`${where}not of the form that is wanted`)
  const { keyword, instancePath, params, message } = first
  const missing = keyword === 'required' && 'requiredProperties' in params ? params.requiredProperties[0] : undefined
  const names = instancePath
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (missing !== undefined) throw new Error(`${where}${pathOf([...names, missing])} is missing`)
  if (keyword === 'boolean') throw new Error(`${where}${pathOf(names)} is not a known field`)
  throw new Error(
    `${where}${names.length === 0 ? 'the whole' : pathOf(names)} is ${shown(valueAt(given, names))}, but ${message}`,
  )
}

/** A value as an error shows it, at most 100 characters. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'undefined' : JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 99)}…` : text
}

/** `price_lists[0].plans.Pro.fee` */
function pathOf(names: readonly string[]): string {
  return names.map((name, index) => (/^\d+$/.test(name) ? `[${name}]` : index === 0 ? name : `.${name}`)).join('')
}

function valueAt(given: unknown, names: readonly string[]): unknown {
  return names.reduce<unknown>(
    (value, name) => (typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined),
    given,
  )
}
