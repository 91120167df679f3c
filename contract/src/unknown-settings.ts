// Rejects variables that look like settings and are not: a misspelt setting would have no effect.
import { ConfigurationError } from './configuration-error.ts'
import { nearest } from './nearest.ts'
import { developmentNames } from './settings.ts'

const prefix = 'TENANTRY_'

/**
 * Checks the names that begin with `TENANTRY_`. Empty variables count as not set.
 * @throws ConfigurationError that names the unknown one and a similar known one
 */
export function rejectUnknownSettings(
  known: Iterable<string>,
  variables: Readonly<Record<string, string | undefined>>,
): void {
  const names = new Set(known)
  const unknown = settingsIn(variables).find((name) => !names.has(name))
  if (unknown === undefined) return
  const short = [...names].map((name) => name.slice(prefix.length))
  const similar = nearest(unknown.slice(prefix.length), short)
  const hint = similar === undefined ? `Allowed: ${[...names].sort().join(', ')}.` : `Did you mean ${prefix}${similar}?`
  throw new ConfigurationError(`Unknown setting ${unknown.slice(0, 100)}. ${hint}`)
}

/** Returns the names of all settings with a value, known or not. */
export function settingsIn(variables: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(variables).flatMap(([name, value = '']) =>
    name.startsWith(prefix) && value !== '' && !developmentNames.includes(name) ? [name] : [],
  )
}
