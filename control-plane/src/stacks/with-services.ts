// The stack of a tenant that moves between two kinds of services of its own, which both run meanwhile. Pure.
import type { Network, Stack } from './stack.ts'

/** Returns a stack with the networks, volumes and services of another one as well. What both have is that of the first. */
export function withServices(stack: Stack, added: Stack): Stack {
  return {
    ...stack,
    networks: stack.networks.map((network) => withContainers(network, added.networks)),
    volumes: byName([...stack.volumes, ...added.volumes]),
    services: byName([...stack.services, ...added.services]),
  }
}

/** Attaches the containers of the network of the same name, too. */
function withContainers(network: Network, others: readonly Network[]): Network {
  const attached = others.filter(({ name }) => name === network.name).flatMap((other) => other.attachedContainers)
  const more = attached.filter(
    ({ container }) => !network.attachedContainers.some((one) => one.container === container),
  )
  return { ...network, attachedContainers: [...network.attachedContainers, ...more] }
}

function byName<T extends { name: string }>(all: readonly T[]): T[] {
  return all.filter(({ name }, at) => all.findIndex((one) => one.name === name) === at)
}
