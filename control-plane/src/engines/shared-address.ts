// Finds containers that have one address on a network of several hosts. Docker Swarm sometimes assigns an address that another container
// has, as when a host returns and a container cannot get its address in time. Then, neither can be reached from every host. Pure.
import type { ObservedContainer, ObservedHost, ObservedNetwork } from './container-host.ts'
import { memberName } from './member-name.ts'

/**
 * Whether a member of a network leaves it because another one has its address. Of two members of the same stack, the first one by its name
 * stays, so that it is not interrupted.
 * @param member as `memberName` makes it
 * @param stack the members that are of the same stack
 */
export function leavesAddress(
  { addresses }: Pick<ObservedNetwork, 'addresses'>,
  member: string,
  stack: ReadonlySet<string>,
): boolean {
  return Object.entries(addresses).some(
    ([other, address]) => other !== member && address === addresses[member] && (other < member || !stack.has(other)),
  )
}

/** Returns the networks, by their names, that a container of the observed stack leaves because another one has its address there. */
export function networksToLeave(container: ObservedContainer, { containers, networks }: ObservedHost): string[] {
  const nameOf = ({ name, host }: ObservedContainer) =>
    memberName({ container: name, ...(host === undefined ? {} : { host }) })
  const [own, all] = [nameOf(container), new Set(containers.map(nameOf))]
  return networks.filter((network) => leavesAddress(network, own, all)).map(({ name }) => name)
}
