// Reads the environment into one frozen, validated value.
import { ConfigurationError, Environment, runtimeSettings, type Networks } from '@tenantry/contract'
import { maxPathLength } from './storage/object-path.ts'
import { defaultStorageLimits, type StorageLimits } from './storage/storage-limits.ts'
import { backendName, type BackendName, type StorageSettings } from './storage/backend/open-backend.ts'
import type { S3Settings } from './storage/backend/s3-connection.ts'

export interface Config {
  host: string
  port: number
  controlUrl: string
  internalToken: string
  /** The directory of blobs and of the last manifests. */
  data: string
  storage: StorageSettings
  /** The maximum number of connections to Postgres, over all tenants. */
  maxConnections: number
  /** The number of other runtimes that serve the same tenants. */
  siblings: number
  limits: StorageLimits
  /** Whether `Prefer: tx=rollback` of the REST interface is allowed. */
  allowsRollback: boolean
  /** Private networks that tenants' functions may reach. */
  functionsMayReach: Networks
  logLevel: string
  /** Failpoints of tests: `name=kill:1,…`. */
  failpoints: string
}

type RuntimeEnvironment = Environment<keyof typeof runtimeSettings>

/**
 * Reads the configuration.
 * @throws ConfigurationError that names the variable and what is wrong with it
 */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const environment = new Environment(runtimeSettings, variables)
  return Object.freeze({
    host: environment.optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: environment.integer('TENANTRY_PORT', 24_401, 0, 65_535),
    controlUrl: environment.required('TENANTRY_CONTROL_URL'),
    internalToken: environment.internalToken(),
    data: environment.required('TENANTRY_DATA'),
    storage: readStorage(environment),
    maxConnections: environment.integer('TENANTRY_MAX_CONNECTIONS', 100, 1, 10_000),
    siblings: environment.integer('TENANTRY_SIBLINGS', 0, 0, 1_000),
    limits: readStorageLimits(environment),
    allowsRollback: environment.integer('TENANTRY_REST_ROLLBACK', 0, 0, 1) === 1,
    functionsMayReach: environment.networks('TENANTRY_FUNCTIONS_MAY_REACH'),
    logLevel: environment.logLevel(),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
  })
}

function readStorageLimits(environment: RuntimeEnvironment): StorageLimits {
  const { pathBytes, signedSeconds, maxSignedSeconds } = defaultStorageLimits
  const max = environment.integer('TENANTRY_MAX_SIGNED_URL_SECONDS', maxSignedSeconds, 1, 10 * maxSignedSeconds)
  return {
    pathBytes: environment.integer('TENANTRY_MAX_PATH_BYTES', pathBytes, 1, maxPathLength),
    signedSeconds: environment.integer('TENANTRY_SIGNED_URL_SECONDS', Math.min(signedSeconds, max), 1, max),
    maxSignedSeconds: max,
  }
}

function readStorage(environment: RuntimeEnvironment): StorageSettings {
  const named = (variable: 'TENANTRY_STORAGE_BACKEND' | 'TENANTRY_STORAGE_FALLBACK'): BackendName | undefined => {
    const name = environment.optional(variable)
    return name === undefined ? undefined : backendName(variable, name)
  }
  const backend = named('TENANTRY_STORAGE_BACKEND') ?? 'local'
  const fallback = named('TENANTRY_STORAGE_FALLBACK')
  if (backend === fallback)
    throw new ConfigurationError(
      `TENANTRY_STORAGE_FALLBACK and TENANTRY_STORAGE_BACKEND are both ${JSON.stringify(fallback)}. They must differ.`,
    )
  return { backend, fallback, s3: backend === 's3' || fallback === 's3' ? readS3(environment) : undefined }
}

function readS3(environment: RuntimeEnvironment): S3Settings {
  const endpoint = environment.optional('TENANTRY_S3_ENDPOINT')
  if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
    throw new ConfigurationError(
      `TENANTRY_S3_ENDPOINT is ${JSON.stringify(endpoint)}. It must be a URL that begins with http:// or https://.`,
    )
  }
  const prefix = environment.optional('TENANTRY_S3_PREFIX') ?? ''
  if (!/^(?:[\w.-]+\/)*$/.test(prefix))
    throw new ConfigurationError(
      `TENANTRY_S3_PREFIX is ${JSON.stringify(prefix)}. It must be names that each end with a slash.`,
    )
  return {
    endpoint,
    prefix,
    region: environment.optional('TENANTRY_S3_REGION') ?? 'us-east-1',
    bucket: environment.required('TENANTRY_S3_BUCKET'),
    // AWS itself does not need path style. Other endpoints rarely have host names for buckets.
    pathStyle: environment.integer('TENANTRY_S3_PATH_STYLE', endpoint === undefined ? 0 : 1, 0, 1) === 1,
    accessKeyId: environment.required('TENANTRY_S3_ACCESS_KEY_ID'),
    secretAccessKey: environment.file('TENANTRY_S3_SECRET_ACCESS_KEY_FILE'),
  }
}
