// Reads the environment into one frozen, validated value.
import { fileURLToPath } from 'node:url'
import { ConfigurationError, Environment, controlPlaneSettings, type Networks } from '@tenantry/contract'
import { readRateLimits, type RateLimits } from './quotas/index.ts'
import { readBillingConfig, type BillingConfig } from './billing/index.ts'
import { readRegions, type RegionConfig } from './regions/index.ts'

export interface Config {
  host: string
  port: number
  controlDatabaseUrl: string
  masterKey: Buffer
  internalToken: string
  regions: readonly RegionConfig[]
  /**
   * Name of the installation that other components, for example the Docker proxy, already use; undefined for the stored
   * one.
   */
  installation: string | undefined
  platformKeyFile: string | undefined
  homeMigrations: string
  failpoints: string
  logLevel: string
  /** Seconds between a DELETE and the destruction of the tenant's data. */
  deleteGraceSeconds: number
  /** Seconds for which an object on an engine must have had no tenant before it is removed. */
  orphanGraceSeconds: number
  /** Maximum size of an upload in bytes if its bucket sets no limit. */
  maxUploadBytes: number
  /** Rates of the plans at each gateway. */
  rateLimits: RateLimits
  /** Private networks to which operators' webhooks may be sent. */
  webhooksMayReach: Networks
  /** Prices; undefined if no invoices are made. */
  billing: BillingConfig | undefined
  /** Directory of the backups; undefined if no backups are made. */
  backups: string | undefined
}

type ControlPlaneEnvironment = Environment<keyof typeof controlPlaneSettings>

/** Reads the configuration. @throws Error that names the variable and the violation */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const environment = new Environment(controlPlaneSettings, variables)
  const masterKey = Buffer.from(environment.file('TENANTRY_MASTER_KEY_FILE'), 'base64')
  if (masterKey.length !== 32) throw new ConfigurationError('TENANTRY_MASTER_KEY_FILE must contain 32 bytes in base64.')
  return Object.freeze({
    host: environment.optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: environment.integer('TENANTRY_PORT', 4400, 0, 65_535),
    controlDatabaseUrl: environment.given('TENANTRY_CONTROL_DATABASE_URL'),
    masterKey,
    internalToken: environment.internalToken(),
    regions: readRegions(environment.file('TENANTRY_REGIONS_FILE'), masterKey),
    installation: readInstallation(environment),
    platformKeyFile: environment.optional('TENANTRY_PLATFORM_KEY_FILE'),
    homeMigrations:
      environment.optional('TENANTRY_HOME_MIGRATIONS') ??
      fileURLToPath(new URL('../../tenant-runtime/migrations/', import.meta.url)),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
    logLevel: environment.logLevel(),
    deleteGraceSeconds: environment.integer('TENANTRY_DELETE_GRACE_SECONDS', 7 * 86_400, 0, 365 * 86_400),
    orphanGraceSeconds: environment.integer('TENANTRY_ORPHAN_GRACE_SECONDS', 3_600, 0, 30 * 86_400),
    maxUploadBytes: environment.integer('TENANTRY_MAX_UPLOAD_BYTES', 100_000_000, 1, Number.MAX_SAFE_INTEGER),
    rateLimits: readRateLimits(environment.optional('TENANTRY_RATE_LIMITS') ?? ''),
    webhooksMayReach: environment.networks('TENANTRY_WEBHOOKS_MAY_REACH'),
    billing: readPrices(environment),
    backups: environment.optional('TENANTRY_BACKUPS'),
  })
}

/** Reads the prices. An installation without a price file makes no invoices. */
function readPrices(environment: ControlPlaneEnvironment): BillingConfig | undefined {
  const path = environment.optional('TENANTRY_PRICES_FILE')
  return path === undefined
    ? undefined
    : readBillingConfig(environment.file('TENANTRY_PRICES_FILE'), `TENANTRY_PRICES_FILE (${path})`)
}

function readInstallation(environment: ControlPlaneEnvironment): string | undefined {
  const name = environment.optional('TENANTRY_INSTALLATION')
  if (name !== undefined && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name))
    throw new ConfigurationError('TENANTRY_INSTALLATION must be a UUID in lower case.')
  return name
}
