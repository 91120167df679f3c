// Finds containers that have one address on a network of several hosts. Docker Swarm sometimes assigns an address that another container
// has, as when a host returns and a container cannot get its address in time. Then, neither can be reached from every host. Pure.
import type { ObservedContainer, ObservedHost, ObservedNetwork } from './container-host.ts'
import { memberName } from './member-name.ts'

/** Returns the names of the other containers on the network that have the same address. @param member as `memberName` makes it */
export function sharersOf({ addresses }: Pick<ObservedNetwork, 'addresses'>, member: string): string[] {
  const own = addresses[member]
  const same = Object.entries(addresses).filter(([other, address]) => other !== member && address === own)
  return same.map(([other]) => other)
}

/**
 * Returns the networks, by their names, on which a container leaves its address to another one: to that which comes first by its name, so
 * that one of them is not interrupted.
 */
export function yieldedNetworks(
  { name, host }: ObservedContainer,
  { networks }: Pick<ObservedHost, 'networks'>,
): string[] {
  const member = memberName({ container: name, ...(host === undefined ? {} : { host }) })
  return networks
    .filter((network) => sharersOf(network, member).some((other) => other < member))
    .map((network) => network.name)
}
