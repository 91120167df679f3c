// Reads the environment into one frozen, validated value.
import { fileURLToPath } from 'node:url'
import {
  ConfigurationError,
  Environment,
  maxRuntimes,
  runtimeSettings,
  type InternalToken,
  type Networks,
  type RuntimeShare,
} from '@tenantry/contract'
import type { BoundsLimits } from './bounds/index.ts'
import { tunnelToStorage, type EgressProxySettings } from './egress/egress-proxy.ts'
import type { SiblingHost } from './realtime/relay/relay.ts'
import { maxPathLength } from './storage/object-path.ts'
import { defaultStorageLimits, type StorageLimits } from './storage/storage-limits.ts'
import { backendName, type BackendName, type StorageSettings } from './storage/backend/open-backend.ts'
import type { S3Settings } from './storage/backend/s3-connection.ts'

export interface Config {
  host: string
  port: number
  controlUrl: string
  internalToken: InternalToken
  /** The directory of blobs and of the last manifests. */
  data: string
  storage: StorageSettings
  /** The maximum number of connections to Postgres, over all tenants. */
  maxConnections: number
  /** The number of other runtimes that serve the same tenants. */
  siblings: number
  /** The runtimes that serve the same tenants, for realtime messages between them; empty without others. */
  siblingHosts: readonly SiblingHost[]
  /** The maximum wait of a request for the next primary, in seconds. */
  failoverSeconds: number
  /** ID of the region whose tenants it serves; undefined if it receives those of all regions. */
  region: string | undefined
  /** The tenants that it serves. */
  share: RuntimeShare
  limits: StorageLimits
  /** The memory for request bodies of all tenants together. */
  memory: BoundsLimits
  /** Whether `Prefer: tx=rollback` of the REST interface is allowed. */
  allowsRollback: boolean
  /** Whether requests of the REST interface may have aggregates. */
  allowsAggregates: boolean
  /** Whether responses of the REST interface have the header `Server-Timing`. */
  sendsTiming: boolean
  /** Whether realtime messages may be compressed. */
  compressesMessages: boolean
  /** The egress proxy through which functions and the storage reach other hosts; undefined to reach them directly. */
  egress: EgressProxySettings | undefined
  /** Private networks that tenants' functions may reach without an egress proxy. */
  functionsMayReach: Networks
  /** The directory of the developers' console. */
  consoleFiles: string
  logLevel: string
  /** Failpoints of tests: `name=kill:1,…`. */
  failpoints: string
}

/** The directory of the bundled developers' console. */
export const developerConsole = fileURLToPath(new URL('../../console/built/developer/', import.meta.url))

type RuntimeEnvironment = Environment<keyof typeof runtimeSettings>

/**
 * Reads the configuration.
 * @param memoryBytes the memory that the process may use, from which defaults follow
 * @throws ConfigurationError that names the variable and what is wrong with it
 */
export function readConfig(variables: NodeJS.ProcessEnv, memoryBytes = Infinity): Config {
  const environment = new Environment(runtimeSettings, variables)
  const runtimes = environment.integer('TENANTRY_RUNTIMES', 1, 1, maxRuntimes)
  const internalToken = environment.internalToken()
  const siblings = environment.integer('TENANTRY_SIBLINGS', 0, 0, 1_000)
  const egress = readEgress(environment, internalToken)
  return Object.freeze({
    host: environment.optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: environment.integer('TENANTRY_PORT', 24_401, 0, 65_535),
    controlUrl: environment.required('TENANTRY_CONTROL_URL'),
    internalToken,
    data: environment.required('TENANTRY_DATA'),
    storage: readStorage(environment, egress, siblings),
    maxConnections: environment.integer('TENANTRY_MAX_CONNECTIONS', 100, 1, 10_000),
    region: environment.optional('TENANTRY_REGION'),
    share: { number: environment.integer('TENANTRY_RUNTIME_NUMBER', 0, 0, runtimes - 1), runtimes },
    siblings,
    siblingHosts: readSiblingHosts(environment),
    failoverSeconds: environment.integer('TENANTRY_FAILOVER_SECONDS', 0, 0, 60),
    limits: readStorageLimits(environment),
    memory: readMemory(environment, memoryBytes, runtimes),
    allowsRollback: environment.integer('TENANTRY_REST_ROLLBACK', 0, 0, 1) === 1,
    allowsAggregates: environment.integer('TENANTRY_REST_AGGREGATES', 1, 0, 1) === 1,
    sendsTiming: environment.integer('TENANTRY_REST_SERVER_TIMING', 0, 0, 1) === 1,
    compressesMessages: environment.integer('TENANTRY_REALTIME_COMPRESSION', 0, 0, 1) === 1,
    egress,
    functionsMayReach: environment.networks('TENANTRY_FUNCTIONS_MAY_REACH'),
    consoleFiles: developerConsole,
    logLevel: environment.logLevel(),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
  })
}

const mebibyte = 2 ** 20
const defaultMebibytes = 512

function readMemory(environment: RuntimeEnvironment, memoryBytes: number, runtimes: number): BoundsLimits {
  const fallback = Math.max(16, Math.min(defaultMebibytes, Math.floor(memoryBytes / mebibyte / 4)))
  const read = (variable: 'TENANTRY_BODY_MEMORY_MB' | 'TENANTRY_RESULT_MEMORY_MB') =>
    Math.floor((environment.integer(variable, fallback, 1, 1_000_000) * mebibyte) / runtimes)
  return { bodyBytes: read('TENANTRY_BODY_MEMORY_MB'), resultBytes: read('TENANTRY_RESULT_MEMORY_MB') }
}

function readSiblingHosts(environment: RuntimeEnvironment): SiblingHost[] {
  const names = environment.optional('TENANTRY_SIBLING_HOSTS')?.split(',') ?? []
  return names.map((name) => {
    const [, host, digits] = /^([^\s:/@?#]+):(\d{1,5})$/.exec(name.trim()) ?? []
    const port = Number(digits)
    if (host === undefined || port > 65_535)
      throw new ConfigurationError(
        `Invalid host ${JSON.stringify(name.slice(0, 100))} in TENANTRY_SIBLING_HOSTS. ` +
          'It must be a name and a port, such as runtime-1:24401.',
      )
    return { host, port }
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

function readEgress(environment: RuntimeEnvironment, token: InternalToken): EgressProxySettings | undefined {
  const url = environment.optional('TENANTRY_EGRESS_PROXY')
  if (url === undefined) return undefined
  if (!/^http:\/\/[^/:@]+:\d{1,5}$/.test(url))
    throw new ConfigurationError(
      `TENANTRY_EGRESS_PROXY is ${JSON.stringify(url.slice(0, 100))}. It must be a URL such as http://gateway:4404.`,
    )
  return { url, token }
}

function readStorage(
  environment: RuntimeEnvironment,
  egress: EgressProxySettings | undefined,
  siblings: number,
): StorageSettings {
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
  return {
    backend,
    fallback,
    s3: backend === 's3' || fallback === 's3' ? withEgress(readS3(environment), egress, siblings) : undefined,
  }
}

/** The connections to the storage that the gateway's egress proxy allows all runtimes of a region together. */
const proxiedSockets = 120

function withEgress(s3: S3Settings, proxy: EgressProxySettings | undefined, siblings: number): S3Settings {
  // The gateway with the proxy is also the storage relay of tenants' own runtimes, which need no way out for it.
  const isRelayed = proxy !== undefined && URL.parse(s3.endpoint ?? '')?.hostname === URL.parse(proxy.url)?.hostname
  if (proxy === undefined || isRelayed) return s3
  const maxSockets = Math.max(1, Math.floor(proxiedSockets / (1 + siblings)))
  return { ...s3, egress: { tunnel: tunnelToStorage(proxy), maxSockets } }
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
