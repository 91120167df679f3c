// The environment as one frozen, validated value.
import { fileURLToPath } from 'node:url'
import { Environment } from '@tenantry/contract'
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

/** @throws Error that names the variable and what is wrong with it */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const environment = new Environment(variables)
  const masterKey = Buffer.from(environment.file('TENANTRY_MASTER_KEY_FILE'), 'base64')
  if (masterKey.length !== 32) throw new Error('TENANTRY_MASTER_KEY_FILE must hold 32 bytes in base64')
  return Object.freeze({
    host: environment.optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: environment.integer('TENANTRY_PORT', 4400, 0, 65_535),
    controlDatabaseUrl: environment.required('TENANTRY_CONTROL_DATABASE_URL'),
    masterKey,
    internalToken: environment.internalToken(),
    regions: readRegions(environment.file('TENANTRY_REGIONS_FILE')),
    platformKeyFile: environment.optional('TENANTRY_PLATFORM_KEY_FILE'),
    homeMigrations:
      environment.optional('TENANTRY_HOME_MIGRATIONS') ?? fileURLToPath(new URL('../../tenant-runtime/migrations/', import.meta.url)),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
    logLevel: environment.logLevel(),
    deleteGraceSeconds: environment.integer('TENANTRY_DELETE_GRACE_SECONDS', 7 * 86_400, 0, 365 * 86_400),
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
