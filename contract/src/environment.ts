// Reads a service's environment. A missing or malformed variable ends the start with an error that names it.
import { readFileSync } from 'node:fs'
import { readNetworks, type Networks } from './addresses.ts'
import { ConfigurationError } from './configuration-error.ts'
import type { Settings } from './setting.ts'
import { TokenFile } from './token-file.ts'
import { rejectUnknownSettings } from './unknown-settings.ts'

/** Values of the setting `TENANTRY_LOG_LEVEL`, the most severe first; `silent` logs nothing. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
/** One of `logLevels`. */
export type LogLevel = (typeof logLevels)[number]

const minTokenLength = 32

/**
 * Reads and checks the settings of one part from its environment. A setting that is missing or wrong is a
 * ConfigurationError that names the variable.
 */
export class Environment<Name extends string> {
  readonly #variables: Readonly<Record<string, string | undefined>>

  /**
   * Checks the names of the settings.
   * @param settings all settings of the part, which can read no others
   * @throws ConfigurationError for a name that begins with `TENANTRY_` and is not a setting
   */
  constructor(settings: Settings<Name>, variables: Readonly<Record<string, string | undefined>>) {
    rejectUnknownSettings(Object.keys(settings), variables)
    this.#variables = variables
  }

  /** Returns the value of a setting; undefined for a variable that is empty or not set. */
  optional(name: Name): string | undefined {
    const value = this.#variables[name]
    return value === '' ? undefined : value
  }

  /** Returns the value of a setting. @throws ConfigurationError that names the variable, as all methods do */
  required(name: Name): string {
    const value = this.optional(name)
    if (value === undefined) throw new ConfigurationError(`${name} is not set.`)
    return value
  }

  /** Reads networks, separated by commas. @throws ConfigurationError that names the variable and the invalid network */
  networks(name: Name): Networks {
    const texts = (this.optional(name) ?? '')
      .split(',')
      .map((text) => text.trim())
      .filter((text) => text !== '')
    try {
      return readNetworks(texts)
    } catch (cause) {
      throw new ConfigurationError(`${name}: ${cause instanceof Error ? cause.message : 'The value cannot be read.'}`, {
        cause,
      })
    }
  }

  /** Reads a whole number from `min` to `max`, both included; `fallback` if the variable is not set. */
  integer(name: Name, fallback: number, min: number, max: number): number {
    const text = this.optional(name)
    if (text === undefined) return fallback
    const value = Number(text)
    if (!Number.isInteger(value) || value < min || value > max) {
      throw new ConfigurationError(
        `Invalid value ${JSON.stringify(text.slice(0, 100))} of ${name}. Allowed: a whole number from ${min} to ${max}.`,
      )
    }
    return value
  }

  /** Reads the file that the variable names, without surrounding blanks. */
  file(name: Name): string {
    const path = this.required(name)
    try {
      return readFileSync(path, 'utf8').trim()
    } catch (cause) {
      throw new ConfigurationError(`The file in ${name} cannot be read.`, { cause })
    }
  }

  /** Returns the variable, or the content of the file that `NAME_FILE` names. */
  given<Short extends string>(name: Name & Short & (`${Short}_FILE` extends Name ? Short : never)): string {
    const file = `${name}_FILE` as Name
    const value = this.optional(name) ?? (this.optional(file) === undefined ? undefined : this.file(file))
    if (value === undefined) throw new ConfigurationError(`Neither ${name} nor ${file} is set.`)
    return value
  }

  /** Reads the installation's internal token from its file. @throws ConfigurationError */
  internalToken(this: Environment<Name | 'TENANTRY_INTERNAL_TOKEN_FILE'>): TokenFile {
    return new TokenFile(this.required('TENANTRY_INTERNAL_TOKEN_FILE'), minTokenLength)
  }

  /** Reads the log level; `info` if none is set. */
  logLevel(this: Environment<Name | 'TENANTRY_LOG_LEVEL'>): LogLevel {
    const text = this.optional('TENANTRY_LOG_LEVEL') ?? 'info'
    const level = logLevels.find((one) => one === text)
    if (level === undefined)
      throw new ConfigurationError(
        `Invalid value ${JSON.stringify(text.slice(0, 100))} of TENANTRY_LOG_LEVEL. Allowed: ${logLevels.join(', ')}.`,
      )
    return level
  }
}
