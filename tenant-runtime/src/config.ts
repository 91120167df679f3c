// The environment as one frozen, validated value.
import { Environment } from '@tenantry/contract'

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
    logLevel: environment.logLevel(),
    failpoints: environment.optional('TENANTRY_FAILPOINTS') ?? '',
  })
}
