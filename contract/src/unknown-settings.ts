// Rejects names in the environment that look like settings and are none: a misspelt setting would have no effect.
import { ConfigurationError } from './configuration-error.ts'
import { nearest } from './nearest.ts'
import { developmentNames } from './settings.ts'

const prefix = 'TENANTRY_'

/**
 * Checks the names that begin with `TENANTRY_`; an empty variable counts as none.
 * @throws ConfigurationError that names the unknown one and the known one that was probably meant
 */
export function rejectUnknownSettings(
  known: Iterable<string>,
  variables: Readonly<Record<string, string | undefined>>,
): void {
  const names = new Set(known)
  const unknown = settingsIn(variables).find((name) => !names.has(name))
  if (unknown === undefined) return
  const short = [...names].map((name) => name.slice(prefix.length))
  const meant = nearest(unknown.slice(prefix.length), short)
  const hint = meant === undefined ? `Allowed: ${[...names].sort().join(', ')}.` : `Did you mean ${prefix}${meant}?`
  throw new ConfigurationError(`Unknown setting ${unknown.slice(0, 100)}. ${hint}`)
}

/** Names of the settings that are given a value, known or not. */
export function settingsIn(variables: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(variables).flatMap(([name, value = '']) =>
    name.startsWith(prefix) && value !== '' && !developmentNames.includes(name) ? [name] : [],
  )
}
