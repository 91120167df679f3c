// Finds containers that have one address on a network of several hosts. Docker Swarm sometimes assigns an address that another container
// has, as when a host returns and a container cannot get its address in time. Then, neither can be reached from every host. Pure.
import type { ObservedContainer, ObservedHost, ObservedNetwork } from './container-host.ts'
import { memberName } from './member-name.ts'

/** Returns the names of the other members of a network that have the same address. @param member as `memberName` makes it */
export function membersWithAddressOf({ addresses }: Pick<ObservedNetwork, 'addresses'>, member: string): string[] {
  const own = addresses[member]
  const same = Object.entries(addresses).filter(([other, address]) => other !== member && address === own)
  return same.map(([other]) => other)
}

/**
 * Returns the networks, by their names, that a container leaves because another one has its address there. Of two containers of the
 * observed stack, the first one by its name stays, so that it is not interrupted.
 */
export function networksToLeave(container: ObservedContainer, { containers, networks }: ObservedHost): string[] {
  const nameOf = ({ name, host }: ObservedContainer) =>
    memberName({ container: name, ...(host === undefined ? {} : { host }) })
  const [own, all] = [nameOf(container), new Set(containers.map(nameOf))]
  return networks
    .filter((network) => membersWithAddressOf(network, own).some((other) => other < own || !all.has(other)))
    .map(({ name }) => name)
}
