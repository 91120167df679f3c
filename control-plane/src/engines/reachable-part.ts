// The part of a stack on hosts that responded. The other part stays as it is: whether it runs is not known. Pure.
import type { Stack } from '../stacks/index.ts'
import type { ObservedHost } from './container-host.ts'

/** Returns the stack without what should be on hosts that did not respond; the stack itself if all responded. */
export function reachablePart(stack: Stack, { unreachableHosts = [] }: ObservedHost): Stack {
  if (unreachableHosts.length === 0) return stack
  const isReachable = ({ host }: { host?: string }) => host === undefined || !unreachableHosts.includes(host)
  return {
    ...stack,
    networks: stack.networks.map((network) => ({
      ...network,
      attachedContainers: network.attachedContainers.filter(isReachable),
    })),
    volumes: stack.volumes.filter(isReachable),
    services: stack.services.filter(isReachable),
  }
}
