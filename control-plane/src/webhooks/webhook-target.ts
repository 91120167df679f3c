// Checks the address that a webhook's messages go to: when an operator sets the URL, and at each delivery, because a
// name may resolve to another address by then.
import { isReachable, pinnedAddress, type Networks, type PinnedAddress } from '@tenantry/contract'

export interface TargetDeps {
  /** The private networks that messages may be sent to. */
  reachable: Networks
  /** Returns all addresses of a name. */
  resolve: (hostname: string) => Promise<string[]>
}

/**
 * Returns the address to connect to, or one that messages may not go to.
 * @returns undefined for a name without any address
 * @throws what `resolve` throws
 */
export function targetOf({ hostname }: URL, { reachable, resolve }: TargetDeps): Promise<PinnedAddress | undefined> {
  return pinnedAddress(hostname, { resolve, isAllowed: (address) => isReachable(address, reachable) })
}

/** The timeout for resolving a name in an operator's request. */
const resolveMilliseconds = 2_000

/**
 * Creates a function that returns the first address of the URL's host that messages may not go to. A name that does not
 * resolve (in time) has none: it may be registered before it is in the DNS, and the check at each delivery decides.
 */
export function createTargetCheck(deps: TargetDeps): (url: string) => Promise<string | undefined> {
  return async (url) => {
    const { promise: late, resolve: giveUp } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => giveUp(undefined), resolveMilliseconds)
    const target = await Promise.race([targetOf(new URL(url), deps).catch(() => undefined), late])
    clearTimeout(timer)
    return target !== undefined && 'forbidden' in target ? target.forbidden : undefined
  }
}
