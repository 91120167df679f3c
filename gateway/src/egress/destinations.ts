// Decides which hosts a caller of the egress proxy may connect to, and finds their addresses.
import { Resolver } from 'node:dns/promises'
import { isReachable, pinnedAddress, type Networks, type PinnedAddress } from '@tenantry/contract'
import type { Destination } from './connect-request.ts'

/** The rules about the hosts that callers may connect to. */
export interface EgressRules {
  /** The storage of the region's runtimes: hosts and ports, whatever their addresses. */
  readonly storage: readonly Destination[]
  /** Private networks that tenants' functions may reach. */
  readonly reachable: Networks
  /** Networks and addresses that tenants' functions never reach, even if they are public or named by `reachable`. */
  readonly forbidden: Networks
}

/** The caller: a tenant, or a runtime that tenants share, which connects to the storage only. */
export type EgressCaller = { tenantId: string } | { isRegion: true }

/** The port of mail servers. They accept mail from this host that no function should send. */
const mailPort = 25

/**
 * Returns the address for a caller's connection.
 * @param resolve returns all addresses of a name
 * @returns undefined for a name without any address
 * @throws what `resolve` throws
 */
export async function addressFor(
  caller: EgressCaller,
  { hostname, port }: Destination,
  { storage, reachable, forbidden }: EgressRules,
  resolve: (hostname: string) => Promise<readonly string[]>,
): Promise<PinnedAddress | undefined> {
  if ('isRegion' in caller) {
    const isStorage = storage.some((one) => one.hostname === hostname && one.port === port)
    return isStorage ? pinnedAddress(hostname, { isAllowed: () => true, resolve }) : { forbidden: hostname }
  }
  if (port === mailPort) return { forbidden: hostname }
  return pinnedAddress(hostname, {
    resolve,
    isAllowed: (address) =>
      isReachable(address, reachable) && !forbidden.check(address, address.includes(':') ? 'ipv6' : 'ipv4'),
  })
}

const absentCodes = ['ENOTFOUND', 'ENODATA']

/**
 * Creates a resolver that asks the DNS, with its own sockets. The system's resolver uses threads which the gateway's files need,
 * and which slow names would occupy.
 * @returns all addresses of a name, those of IPv4 first; none if it has none
 */
export function createResolver(): (hostname: string) => Promise<string[]> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  const found = (lookup: Promise<string[]>) =>
    lookup.catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && absentCodes.includes(String(error.code))) return []
      throw error
    })
  return async (hostname) =>
    (await Promise.all([found(resolver.resolve4(hostname)), found(resolver.resolve6(hostname))])).flat()
}
