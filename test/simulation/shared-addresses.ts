// Addresses that a simulated swarm assigns twice, as Docker Swarm sometimes does when a host returns. Neither container can be reached on
// that network then. On its other networks, each continues.
import type { Container } from './docker-objects.ts'

/** The number of containers that a returned host starts until one gets the address of another one. */
const rarity = 20

/** @param running returns the running containers of all hosts */
export function createSharedAddresses(running: () => readonly Container[]) {
  const othersOn = (container: Container, network: string) => {
    const id = container.slots.get(network)?.networkId
    return running().filter((other) => other !== container && other.slots.get(network)?.networkId === id)
  }
  return {
    /** Whether another running container has the address of this one on a network. */
    isShared(container: Container, network: string): boolean {
      const shared = container.slots.get(network)?.shared
      return (
        shared !== undefined &&
        othersOn(container, network).some((other) => other.slots.get(network)?.shared === shared)
      )
    },
    /** Perhaps gives a container that has begun the address of another one. It draws nothing, so that other events stay as they are. */
    begun(container: Container): void {
      const draw = Number.parseInt(container.id.slice(-4), 16) + container.run
      if (draw % rarity !== 0) return
      for (const [network, location] of container.slots) {
        const others = othersOn(container, network)
        const rival = others[draw % others.length]?.slots.get(network)
        if (rival === undefined) continue
        rival.shared ??= `${container.id} ${container.run}`
        location.shared = rival.shared
      }
    },
  }
}
