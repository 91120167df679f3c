// Writes a value as YAML for Compose. Pure.
import { stringify } from 'yaml'

/** A value of a Compose file. */
export type Yaml = string | number | boolean | readonly Yaml[] | { readonly [key: string]: Yaml | undefined }

/** Returns the text of a value. All strings are quoted, so that none has another type. Keys without a value are omitted. */
export function toYaml(value: Yaml): string {
  // Compose replaces variables after a single dollar sign.
  const escape = (_key: unknown, one: unknown) => (typeof one === 'string' ? one.replaceAll('$', '$$$$') : one)
  return stringify(value, escape, { defaultKeyType: 'PLAIN', defaultStringType: 'QUOTE_DOUBLE', lineWidth: 0 })
}
