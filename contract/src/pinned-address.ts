// Chooses the address of a foreign host. A name is resolved once, and the caller connects to the address that was checked, so that
// a name cannot resolve to another address between the check and the connection.
import { isIP } from 'node:net'

/** Dependencies of `pinnedAddress`. */
export interface PinDeps {
  /** Whether a connection to an address is allowed, by default with `isReachable`. */
  isAllowed: (address: string) => boolean
  /** Returns all addresses of a name. */
  resolve: (hostname: string) => Promise<readonly string[]>
}

/** The address to connect to, or the first address to which no connection is allowed. */
export type PinnedAddress = { address: string } | { forbidden: string }

/**
 * Returns the address to connect to. All addresses of the name must be allowed: a host with both allowed and other addresses may
 * be an attack.
 * @param hostname a name or an address, as `URL.hostname` has it
 * @returns undefined for a name without any address
 * @throws what `resolve` throws
 */
export async function pinnedAddress(
  hostname: string,
  { isAllowed, resolve }: PinDeps,
): Promise<PinnedAddress | undefined> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  const forbidden = addresses.find((address) => !isAllowed(address))
  if (forbidden !== undefined) return { forbidden }
  const [address] = addresses
  return address === undefined ? undefined : { address }
}
