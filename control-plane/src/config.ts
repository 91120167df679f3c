// The environment as one frozen, validated value.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

/** Where tenants can live. The embedded installation has one, `local`. */
export const RegionConfig = Type.Object(
  {
    id: Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' }),
    engine: Type.Union([Type.Literal('process'), Type.Literal('docker'), Type.Literal('swarm')]),
    /** Host names of tenants are `{name}.{domain}`. */
    domain: Type.String({ minLength: 1 }),
    /** The tenants' public door, e.g. `http://127.0.0.1:4401`. */
    gateway_url: Type.String({ pattern: '^https?://' }),
    /** Superuser's URL of the region's shared Postgres, database `postgres`. */
    postgres_url: Type.String({ pattern: '^postgres(ql)?://' }),
    runtime_urls: Type.Array(Type.String({ pattern: '^https?://' }), { minItems: 1 }),
    gateway_internal_urls: Type.Array(Type.String({ pattern: '^https?://' }), { minItems: 1 }),
  },
  { additionalProperties: false },
)
export type RegionConfig = Static<typeof RegionConfig>

const RegionsFile = Type.Array(RegionConfig, { minItems: 1 })

export interface Config {
  host: string
  port: number
  controlDatabaseUrl: string
  masterKey: Buffer
  internalToken: string
  regions: readonly RegionConfig[]
  platformKeyFile: string | undefined
  homeMigrations: string
  failpoints: string
  logLevel: string
  /** Seconds between a DELETE and the destruction of what the tenant had. */
  deleteGraceSeconds: number
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
  const file = (name: string) => {
    try {
      return readFileSync(required(name), 'utf8').trim()
    } catch (cause) {
      throw new Error(`${name} names a file that can't be read`, { cause })
    }
  }
  const masterKey = Buffer.from(file('TENANTRY_MASTER_KEY_FILE'), 'base64')
  if (masterKey.length !== 32) throw new Error('TENANTRY_MASTER_KEY_FILE must hold 32 bytes in base64')
  const internalToken = file('TENANTRY_INTERNAL_TOKEN_FILE')
  if (internalToken.length < 32) throw new Error('TENANTRY_INTERNAL_TOKEN_FILE must hold at least 32 characters')
  const logLevel = optional('TENANTRY_LOG_LEVEL') ?? 'info'
  if (!logLevels.includes(logLevel)) throw new Error(`TENANTRY_LOG_LEVEL is ${logLevel}: want one of ${logLevels.join(', ')}`)
  return Object.freeze({
    host: optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: integer('TENANTRY_PORT', 4400, 0, 65_535),
    controlDatabaseUrl: required('TENANTRY_CONTROL_DATABASE_URL'),
    masterKey,
    internalToken,
    regions: readRegions(file('TENANTRY_REGIONS_FILE')),
    platformKeyFile: optional('TENANTRY_PLATFORM_KEY_FILE'),
    homeMigrations:
      optional('TENANTRY_HOME_MIGRATIONS') ?? fileURLToPath(new URL('../../tenant-runtime/migrations/', import.meta.url)),
    failpoints: optional('TENANTRY_FAILPOINTS') ?? '',
    logLevel,
    deleteGraceSeconds: integer('TENANTRY_DELETE_GRACE_SECONDS', 7 * 86_400, 0, 365 * 86_400),
  })
}

function readRegions(text: string): RegionConfig[] {
  let regions: unknown
  try {
    regions = JSON.parse(text)
  } catch (cause) {
    throw new Error('TENANTRY_REGIONS_FILE is no JSON', { cause })
  }
  if (!Value.Check(RegionsFile, regions)) {
    const [first] = Value.Errors(RegionsFile, regions)
    throw new Error(`TENANTRY_REGIONS_FILE${first?.instancePath ?? ''}: ${first?.message ?? 'invalid'}`)
  }
  if (new Set(regions.map((region) => region.id)).size !== regions.length) {
    throw new Error('TENANTRY_REGIONS_FILE names a region twice')
  }
  return regions
}
