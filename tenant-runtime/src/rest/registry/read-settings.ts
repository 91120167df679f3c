// Reads a change of a tenant's settings, and applies it. Pure.
import { RuntimeError } from '../../errors.ts'
import { defaultSettings, firstSchema, type RestSettings } from './rest-settings.ts'

/** The members of a change. Null returns a setting to its default. */
export type SettingsChange = Readonly<Partial<Record<keyof RestSettings, unknown>>>

const names = Object.keys(defaultSettings) as (keyof RestSettings)[]

/**
 * Reads the change in the body of a reload.
 * @throws RuntimeError BAD_REQUEST, UNKNOWN_FIELD
 */
export function readSettingsChange(value: unknown): SettingsChange {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value))
    throw new RuntimeError('BAD_REQUEST', 'Field "settings" must be an object.')
  const given = Object.fromEntries(Object.entries(value))
  for (const name of Object.keys(given))
    if (!names.some((known) => known === name))
      throw new RuntimeError(
        'UNKNOWN_FIELD',
        `Unknown field "settings.${name.slice(0, 100)}". Allowed: ${names.join(', ')}.`,
      )
  // The values are checked here, so that a reload fails before it begins.
  changedSettings(defaultSettings, given)
  return given
}

/**
 * Returns the settings after a change.
 * @throws RuntimeError BAD_REQUEST
 */
export function changedSettings(before: RestSettings, change: SettingsChange): RestSettings {
  const read = <Name extends keyof RestSettings>(
    name: Name,
    parse: (value: unknown) => RestSettings[Name],
  ): RestSettings[Name] => {
    const value = change[name]
    if (value === undefined) return before[name]
    return value === null ? defaultSettings[name] : parse(value)
  }
  return {
    db_schemas: read('db_schemas', schemaNames),
    db_pre_request: read('db_pre_request', (value) => functionName('db_pre_request', value)),
    db_root_spec: read('db_root_spec', (value) => functionName('db_root_spec', value)),
    db_aggregates_enabled: read('db_aggregates_enabled', (value) => {
      if (typeof value !== 'boolean')
        throw new RuntimeError('BAD_REQUEST', 'Field "settings.db_aggregates_enabled" must be true, false or null.')
      return value
    }),
  }
}

/** The maximum number of schemas. Each has a catalog of its own. */
const maxSchemas = 20

function schemaNames(value: unknown): string[] {
  const wanted = `Field "settings.db_schemas" must be a list of 1 to ${maxSchemas} different names that begins with "${firstSchema}".`
  if (!Array.isArray(value) || value.length > maxSchemas || value[0] !== firstSchema)
    throw new RuntimeError('BAD_REQUEST', wanted)
  const names = value.map((name: unknown, n) => {
    if (typeof name !== 'string' || !/^(?!pg_)[a-z][a-z0-9_]{0,30}$/.test(name) || name === 'information_schema')
      throw new RuntimeError(
        'BAD_REQUEST',
        `Field "settings.db_schemas[${n}]" must have 1 to 31 of a-z, 0-9 and _, and begin with a letter, but not with pg_.`,
      )
    return name
  })
  if (new Set(names).size < names.length) throw new RuntimeError('BAD_REQUEST', wanted)
  return names
}

/** Reads the name of a function, which may be preceded by that of the schema, as in PostgREST. */
function functionName(setting: string, value: unknown): string {
  const name = typeof value === 'string' ? value.replace(/^public\./, '') : ''
  if (name === '' || Buffer.byteLength(name) > 63 || name.includes('\0'))
    throw new RuntimeError(
      'BAD_REQUEST',
      `Field "settings.${setting}" must be the name of a function, with at most 63 bytes, or null.`,
    )
  return name
}
