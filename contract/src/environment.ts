// Reading a service's environment: each variable is there, of its form, or the start ends with its name.
import { readFileSync } from 'node:fs'
import { readNetworks, type Networks } from './addresses.ts'
import { ConfigurationError } from './configuration-error.ts'
import type { Settings } from './settings.ts'
import { rejectUnknownSettings } from './unknown-settings.ts'

/** Values of the setting `TENANTRY_LOG_LEVEL`, the most severe first; `silent` logs nothing. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
/** One of `logLevels`. */
export type LogLevel = (typeof logLevels)[number]
const shortestToken = 32

/**
 * Reads and checks the settings of one part from its environment. A setting that is missing or wrong is a
 * ConfigurationError that names the variable.
 */
export class Environment<Name extends string> {
  readonly #variables: Readonly<Record<string, string | undefined>>

  /**
   * @param settings all that the part has; it can read no others
   * @throws ConfigurationError for a name that begins with `TENANTRY_` and is none of the settings
   */
  constructor(settings: Settings<Name>, variables: Readonly<Record<string, string | undefined>>) {
    rejectUnknownSettings(Object.keys(settings), variables)
    this.#variables = variables
  }

  /** An empty variable counts as none. */
  optional(name: Name): string | undefined {
    const value = this.#variables[name]
    return value === '' ? undefined : value
  }

  /** @throws ConfigurationError that names the variable, as all of these do */
  required(name: Name): string {
    const value = this.optional(name)
    if (value === undefined) throw new ConfigurationError(`${name} is not set`)
    return value
  }

  /** Networks, separated by commas. @throws ConfigurationError that names the variable and the one that is none */
  networks(name: Name): Networks {
    const texts = (this.optional(name) ?? '')
      .split(',')
      .map((text) => text.trim())
      .filter((text) => text !== '')
    try {
      return readNetworks(texts)
    } catch (cause) {
      throw new ConfigurationError(`${name}: ${cause instanceof Error ? cause.message : 'unreadable'}`, { cause })
    }
  }

  /** Reads a whole number from `least` to `most`, both included; `fallback` where the variable is not set. */
  integer(name: Name, fallback: number, least: number, max: number): number {
    const text = this.optional(name)
    if (text === undefined) return fallback
    const value = Number(text)
    if (!Number.isInteger(value) || value < least || value > max) {
      throw new ConfigurationError(`${name} is ${JSON.stringify(text)}: want a whole number from ${least} to ${max}`)
    }
    return value
  }

  /** The text of the file that the variable names, without blanks around it. */
  file(name: Name): string {
    const path = this.required(name)
    try {
      return readFileSync(path, 'utf8').trim()
    } catch (cause) {
      throw new ConfigurationError(`${name} names a file that can't be read`, { cause })
    }
  }

  /** The variable, or the text of the file that `NAME_FILE` names. */
  given<Short extends string>(name: Name & Short & (`${Short}_FILE` extends Name ? Short : never)): string {
    const file = `${name}_FILE` as Name
    const value = this.optional(name) ?? (this.optional(file) === undefined ? undefined : this.file(file))
    if (value === undefined) throw new ConfigurationError(`${name} is not set, nor is ${file}`)
    return value
  }

  /** Reads the installation's internal token from its file; a token of fewer than 32 characters is rejected. */
  internalToken(this: Environment<Name | 'TENANTRY_INTERNAL_TOKEN_FILE'>): string {
    const token = this.file('TENANTRY_INTERNAL_TOKEN_FILE')
    if (token.length < shortestToken)
      throw new ConfigurationError(`TENANTRY_INTERNAL_TOKEN_FILE must hold at least ${shortestToken} characters`)
    return token
  }

  /** Reads the log level; `info` where none is set. */
  logLevel(this: Environment<Name | 'TENANTRY_LOG_LEVEL'>): LogLevel {
    const text = this.optional('TENANTRY_LOG_LEVEL') ?? 'info'
    const level = logLevels.find((one) => one === text)
    if (level === undefined)
      throw new ConfigurationError(`TENANTRY_LOG_LEVEL is ${JSON.stringify(text)}: want one of ${logLevels.join(', ')}`)
    return level
  }
}
