// Reads the environment into one frozen, validated value.
import { fileURLToPath } from 'node:url'
import {
  ConfigurationError,
  Environment,
  controlPlaneSettings,
  type InternalToken,
  type Networks,
} from '@tenantry/contract'
import { readHomeLimits, readRateLimits, type HomeLimits, type RateLimits } from './quotas/index.ts'
import { readTargets, type TargetConfig } from './backups/index.ts'
import { readBillingConfig, type BillingConfig } from './billing/index.ts'
import { defaultMaxObjects } from './homes/index.ts'
import { superuserWithFile, type PostgresUrl } from './platform/superuser-url.ts'
import { isUuid } from './platform/uuid.ts'
import { readRegions, type RegionConfig } from './regions/index.ts'
import { readSessionLimits, type SessionLimitsConfig } from './sessions/index.ts'

export interface Config {
  host: string
  port: number
  controlDatabaseUrl: PostgresUrl
  /** The master keys, the newest first. Former ones only decrypt. */
  masterKeys: readonly [Buffer, ...Buffer[]]
  internalToken: InternalToken
  regions: readonly RegionConfig[]
  /**
   * Name of the installation that other components, for example the Docker proxy, already use; undefined for the stored
   * one.
   */
  installation: string | undefined
  platformKeyFile: string | undefined
  homeMigrations: string
  /** Directory of the bundled web console. */
  consoleFiles: string
  failpoints: string
  logLevel: string
  /** Seconds between a DELETE and the destruction of the tenant's data. */
  deleteGraceSeconds: number
  /** Seconds for which an object on an engine must have had no tenant before it is removed. */
  orphanGraceSeconds: number
  /** Maximum size of an upload in bytes if its bucket sets no limit. */
  maxUploadBytes: number
  homeLimits: HomeLimits
  /** Days after which operations are deleted. */
  operationDays: number
  /** Milliseconds for which a move between databases may hold a tenant's requests. */
  moveHoldMilliseconds: number
  /** Seconds after a move between databases for which it can be reverted; 0: it cannot. */
  moveReverseSeconds: number
  /** The pace at which a move copies a home. */
  moveBytesPerSecond: number
  /** The pace at which a backup reads a home. */
  backupBytesPerSecond: number
  /** Days after which entries of the audit log are removed. */
  auditDays: number
  /** Maximum number of a tenant's own relations in its home, and of its other objects. */
  maxObjects: number
  /** Rates of the plans at each gateway. */
  rateLimits: RateLimits
  /** Private networks to which operators' webhooks may be sent. */
  webhooksMayReach: Networks
  /** Proxies of the operator in front of the API, which report the addresses of their clients. */
  trustedProxies: Networks
  /** Limits of tenants' SQL sessions on shared servers. */
  sessionLimits: SessionLimitsConfig
  /** Prices; undefined if no invoices are made. */
  billing: BillingConfig | undefined
  /** Directory of the first backup target; undefined for none. */
  backups: string | undefined
  /** The other backup targets. */
  backupTargets: readonly TargetConfig[]
  /** Days within which each tenant's newest backup is verified once; 0 for never. */
  proofDays: number
  /** Minutes between two dumps of the control database into each backup target; 0 for none. */
  dumpMinutes: number
}

type ControlPlaneEnvironment = Environment<keyof typeof controlPlaneSettings>

const megabytes = 1_000_000

/** Reads the configuration. @throws Error that names the variable and the violation */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const environment = new Environment(controlPlaneSettings, variables)
  const masterKeys = readMasterKeys(environment.file('TENANTRY_MASTER_KEY_FILE'))
  return Object.freeze({
    host: environment.optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: environment.integer('TENANTRY_PORT', 4400, 0, 65_535),
    controlDatabaseUrl: readControlDatabaseUrl(environment),
    masterKeys,
    internalToken: environment.internalToken(),
    regions: readRegions(environment.file('TENANTRY_REGIONS_FILE'), masterKeys.at(-1) ?? masterKeys[0]),
    installation: readInstallation(environment),
    platformKeyFile: environment.optional('TENANTRY_PLATFORM_KEY_FILE'),
    homeMigrations:
      environment.optional('TENANTRY_HOME_MIGRATIONS') ??
      fileURLToPath(new URL('../../tenant-runtime/migrations/', import.meta.url)),
    consoleFiles: fileURLToPath(new URL('../../console/built/', import.meta.url)),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
    logLevel: environment.logLevel(),
    deleteGraceSeconds: environment.integer('TENANTRY_DELETE_GRACE_SECONDS', 7 * 86_400, 0, 365 * 86_400),
    orphanGraceSeconds: environment.integer('TENANTRY_ORPHAN_GRACE_SECONDS', 3_600, 0, 30 * 86_400),
    maxUploadBytes: environment.integer('TENANTRY_MAX_UPLOAD_BYTES', 100_000_000, 1, Number.MAX_SAFE_INTEGER),
    maxObjects: environment.integer('TENANTRY_MAX_RELATIONS', defaultMaxObjects, 100, 1_000_000),
    operationDays: environment.integer('TENANTRY_OPERATION_DAYS', 365, 1, 36_500),
    moveHoldMilliseconds: environment.integer('TENANTRY_MOVE_HOLD_MILLISECONDS', 3_000, 100, 60_000),
    moveReverseSeconds: environment.integer('TENANTRY_MOVE_REVERSE_SECONDS', 3_600, 0, 86_400),
    moveBytesPerSecond: megabytes * environment.integer('TENANTRY_MOVE_MEGABYTES_PER_SECOND', 60, 1, 100_000),
    backupBytesPerSecond: megabytes * environment.integer('TENANTRY_BACKUP_MEGABYTES_PER_SECOND', 100, 1, 100_000),
    auditDays: environment.integer('TENANTRY_AUDIT_DAYS', 2_557, 30, 36_500),
    homeLimits: readHomeLimits((name) => environment.optional(name)),
    rateLimits: readRateLimits(environment.optional('TENANTRY_RATE_LIMITS') ?? ''),
    sessionLimits: readSessionLimits(environment.optional('TENANTRY_SESSION_LIMITS') ?? ''),
    webhooksMayReach: environment.networks('TENANTRY_WEBHOOKS_MAY_REACH'),
    trustedProxies: environment.networks('TENANTRY_API_TRUSTED_PROXIES'),
    billing: readPrices(environment),
    backups: environment.optional('TENANTRY_BACKUPS'),
    backupTargets: readBackupTargets(environment),
    proofDays: environment.integer('TENANTRY_PROOF_DAYS', 7, 0, 365),
    dumpMinutes: environment.integer('TENANTRY_DUMP_MINUTES', 60, 0, 10_080),
  })
}

/** Reads the URL of the control database. A file of passwords replaces the password in the URL. */
function readControlDatabaseUrl(environment: ControlPlaneEnvironment): PostgresUrl {
  const url = environment.given('TENANTRY_CONTROL_DATABASE_URL')
  const file = environment.optional('TENANTRY_CONTROL_DATABASE_PASSWORD_FILE')
  return file === undefined ? url : superuserWithFile(url, file, 'TENANTRY_CONTROL_DATABASE_PASSWORD_FILE')
}

/** Reads the master keys, one in a line. */
function readMasterKeys(text: string): Config['masterKeys'] {
  const [newest = Buffer.alloc(0), ...former] = text
    .trim()
    .split(/\s*\n\s*/)
    .map((line) => Buffer.from(line, 'base64'))
  if ([newest, ...former].some((key) => key.length !== 32))
    throw new ConfigurationError('TENANTRY_MASTER_KEY_FILE must contain 32 bytes in base64 in each line.')
  return [newest, ...former]
}

/** Reads the prices. An installation without a price file makes no invoices. */
function readPrices(environment: ControlPlaneEnvironment): BillingConfig | undefined {
  const path = environment.optional('TENANTRY_PRICES_FILE')
  return path === undefined
    ? undefined
    : readBillingConfig(environment.file('TENANTRY_PRICES_FILE'), `TENANTRY_PRICES_FILE (${path})`)
}

function readBackupTargets(environment: ControlPlaneEnvironment): TargetConfig[] {
  const path = environment.optional('TENANTRY_BACKUP_TARGETS_FILE')
  return path === undefined ? [] : readTargets(environment.file('TENANTRY_BACKUP_TARGETS_FILE'))
}

function readInstallation(environment: ControlPlaneEnvironment): string | undefined {
  const name = environment.optional('TENANTRY_INSTALLATION')
  if (name !== undefined && !isUuid(name))
    throw new ConfigurationError('TENANTRY_INSTALLATION must be a UUID in lower case.')
  return name
}
