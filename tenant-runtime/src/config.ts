// The environment as one frozen, validated value.
import { readFileSync } from 'node:fs'

export interface Config {
  host: string
  port: number
  controlUrl: string
  internalToken: string
  /** Directory of blobs and of the last manifests. */
  data: string
  /** Connections to Postgres, over all tenants. */
  maxConnections: number
  logLevel: string
  /** Failpoints of tests: `name=kill:1,…`. */
  failpoints: string
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** @throws Error that names the variable and what is wrong with it */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const optional = (name: string) => (environment[name] === '' ? undefined : environment[name])
  const required = (name: string) => {
    const value = optional(name)
    if (value === undefined) throw new Error(`${name} is not set`)
    return value
  }
  const integer = (name: string, fallback: number, least: number, most: number) => {
    const text = optional(name)
    if (text === undefined) return fallback
    const value = Number(text)
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new Error(`${name} is ${JSON.stringify(text)}: want a whole number from ${least} to ${most}`)
    }
    return value
  }
  const logLevel = optional('TENANTRY_LOG_LEVEL') ?? 'info'
  if (!logLevels.includes(logLevel)) throw new Error(`TENANTRY_LOG_LEVEL is ${logLevel}: want one of ${logLevels.join(', ')}`)
  let internalToken: string
  try {
    internalToken = readFileSync(required('TENANTRY_INTERNAL_TOKEN_FILE'), 'utf8').trim()
  } catch (cause) {
    throw new Error("TENANTRY_INTERNAL_TOKEN_FILE names a file that can't be read", { cause })
  }
  if (internalToken.length < 32) throw new Error('TENANTRY_INTERNAL_TOKEN_FILE must hold at least 32 characters')
  return Object.freeze({
    host: optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: integer('TENANTRY_PORT', 24_401, 0, 65_535),
    controlUrl: required('TENANTRY_CONTROL_URL'),
    internalToken,
    data: required('TENANTRY_DATA'),
    maxConnections: integer('TENANTRY_MAX_CONNECTIONS', 100, 1, 10_000),
    logLevel,
    failpoints: optional('TENANTRY_FAILPOINTS') ?? '',
  })
}
