// Reading a service's environment: each variable is there, of its form, or the start ends with its name.
import { readFileSync } from 'node:fs'
import { readNetworks, type Networks } from './addresses.ts'

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']
const shortestToken = 32

export class Environment {
  readonly #variables: Readonly<Record<string, string | undefined>>

  constructor(variables: Readonly<Record<string, string | undefined>>) {
    this.#variables = variables
  }

  /** An empty variable counts as none. */
  optional(name: string): string | undefined {
    const value = this.#variables[name]
    return value === '' ? undefined : value
  }

  /** @throws Error that names the variable, as all of these do */
  required(name: string): string {
    const value = this.optional(name)
    if (value === undefined) throw new Error(`${name} is not set`)
    return value
  }

  /** Networks, separated by commas. @throws Error that names the variable and the one that is none */
  networks(name: string): Networks {
    const texts = (this.optional(name) ?? '').split(',').map((text) => text.trim()).filter((text) => text !== '')
    try {
      return readNetworks(texts)
    } catch (cause) {
      throw new Error(`${name}: ${cause instanceof Error ? cause.message : 'unreadable'}`, { cause })
    }
  }

  integer(name: string, fallback: number, least: number, most: number): number {
    const text = this.optional(name)
    if (text === undefined) return fallback
    const value = Number(text)
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new Error(`${name} is ${JSON.stringify(text)}: want a whole number from ${least} to ${most}`)
    }
    return value
  }

  /** The text of the file that the variable names, without blanks around it. */
  file(name: string): string {
    const path = this.required(name)
    try {
      return readFileSync(path, 'utf8').trim()
    } catch (cause) {
      throw new Error(`${name} names a file that can't be read`, { cause })
    }
  }

  /** The variable, or the text of the file that `NAME_FILE` names. */
  given(name: string): string {
    const file = `${name}_FILE`
    const value = this.optional(name) ?? (this.optional(file) === undefined ? undefined : this.file(file))
    if (value === undefined) throw new Error(`${name} is not set, nor is ${file}`)
    return value
  }

  internalToken(): string {
    const token = this.file('TENANTRY_INTERNAL_TOKEN_FILE')
    if (token.length < shortestToken) throw new Error(`TENANTRY_INTERNAL_TOKEN_FILE must hold at least ${shortestToken} characters`)
    return token
  }

  logLevel(): string {
    const level = this.optional('TENANTRY_LOG_LEVEL') ?? 'info'
    if (!logLevels.includes(level)) throw new Error(`TENANTRY_LOG_LEVEL is ${JSON.stringify(level)}: want one of ${logLevels.join(', ')}`)
    return level
  }
}
