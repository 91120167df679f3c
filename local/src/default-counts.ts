// How many runtimes and gateways an installation has by default, by the number of processor cores.
import { maxRuntimes } from '@tenantry/contract'

/** The maximum number of gateways. Two thirds of 24 cores remain for runtimes and Postgres then. */
export const maxGateways = 8

/** Number of runtimes up to which all of them together have no more connections to Postgres than one. */
const runtimesWithOneShare = 4

/**
 * Returns the default number of runtimes: one for each core, up to four, because tenants are not distributed evenly; then one
 * for two cores. The other half of the cores is for gateways and Postgres.
 */
export function defaultRuntimes(cores: number): number {
  return Math.min(cores, Math.max(runtimesWithOneShare, Math.ceil(cores / 2)), maxRuntimes)
}

/** Returns the default number of gateways: one for three cores, because a request costs a gateway up to a third of its CPU time. */
export function defaultGateways(cores: number): number {
  return Math.min(Math.ceil(cores / 3), maxGateways)
}
