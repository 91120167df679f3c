// The environment as one frozen, validated value.
import { Environment } from '@tenantry/contract'
import { longestPath } from './storage/object-path.ts'
import { defaultStorageLimits, type StorageLimits } from './storage/storage-limits.ts'

export interface Config {
  host: string
  port: number
  controlUrl: string
  internalToken: string
  /** Directory of blobs and of the last manifests. */
  data: string
  /** Connections to Postgres, over all tenants. */
  maxConnections: number
  /** Other runtimes that serve the same tenants. */
  siblings: number
  storage: StorageLimits
  logLevel: string
  /** Failpoints of tests: `name=kill:1,…`. */
  failpoints: string
}

/** @throws Error that names the variable and what is wrong with it */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const environment = new Environment(variables)
  return Object.freeze({
    host: environment.optional('TENANTRY_HOST') ?? '127.0.0.1',
    port: environment.integer('TENANTRY_PORT', 24_401, 0, 65_535),
    controlUrl: environment.required('TENANTRY_CONTROL_URL'),
    internalToken: environment.internalToken(),
    data: environment.required('TENANTRY_DATA'),
    maxConnections: environment.integer('TENANTRY_MAX_CONNECTIONS', 100, 1, 10_000),
    siblings: environment.integer('TENANTRY_SIBLINGS', 0, 0, 1_000),
    storage: readStorageLimits(environment),
    logLevel: environment.logLevel(),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
  })
}

function readStorageLimits(environment: Environment): StorageLimits {
  const { pathBytes, signedSeconds, longestSignedSeconds } = defaultStorageLimits
  const longest = environment.integer('TENANTRY_MAX_SIGNED_URL_SECONDS', longestSignedSeconds, 1, 10 * longestSignedSeconds)
  return {
    pathBytes: environment.integer('TENANTRY_MAX_PATH_BYTES', pathBytes, 1, longestPath),
    signedSeconds: environment.integer('TENANTRY_SIGNED_URL_SECONDS', Math.min(signedSeconds, longest), 1, longest),
    longestSignedSeconds: longest,
  }
}
