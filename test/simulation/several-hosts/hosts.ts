// The hosts of a simulated swarm. Each has an Engine of its own, and all have their networks in common. A host may lose its power, or
// be cut off from the others and from the control planes while its containers run.
import { networkName } from '#control-plane/stacks/object-names.ts'
import type { Chance } from '../chance.ts'
import type { Actor } from '../control-plane.ts'
import { createDocker, type Docker } from '../docker.ts'
import type { Change, Container, Network } from '../docker-objects.ts'
import type { Scheduler } from '../scheduler.ts'
import { createSharedAddresses } from '../shared-addresses.ts'

export interface SimulatedMachine {
  id: string
  docker: Docker
}

/** A container on its host. */
export interface Located {
  host: SimulatedMachine
  container: Container
}

export type Machines = ReturnType<typeof createMachines>

interface MachinesOptions {
  ids: readonly string[]
  chance: Chance
  scheduler: Scheduler
  onChange: (change: Change, actor: Actor) => void
}

export function createMachines({ ids, chance, scheduler, onChange }: MachinesOptions) {
  const networks = new Map<string, Network>()
  const all: SimulatedMachine[] = []
  const containers = () => all.flatMap(({ docker }) => [...docker.containers.values()])
  const sharedAddresses = createSharedAddresses(() =>
    all.flatMap(({ docker }) => [...docker.containers.values()].filter(docker.isRunning)),
  )
  const swarm = { networks, containers, returned: sharedAddresses.begun }
  for (const id of ids) {
    all.push({ id, docker: createDocker({ scheduler, chance, onChange, beginsAnywhere: false, swarm }) })
  }

  const linked = (one: SimulatedMachine, other: SimulatedMachine): boolean =>
    one === other ? !one.docker.state.isDown : one.docker.isReachable() && other.docker.isReachable()
  const isOn = (container: Container, network: string): boolean => {
    const location = container.slots.get(network)
    return location !== undefined && location.networkId === networks.get(network)?.id
  }
  const isReachedOn = (container: Container, network: string): boolean =>
    isOn(container, network) && !sharedAddresses.isShared(container, network)

  return {
    all,
    networks,
    /** Whether a container is on a network that exists. */
    isOn,
    /** Whether others on a network can connect to a container: it is there, with an address of its own. */
    isReachedOn,
    /** Whether one container's program can connect to the other's by a network. */
    reaches: (one: Located, other: Located, network: string): boolean =>
      linked(one.host, other.host) && isReachedOn(one.container, network) && isReachedOn(other.container, network),
    /** Whether a host is one of a majority that are connected, so that its swarm has a leader. */
    hasMajority: (host: SimulatedMachine): boolean =>
      all.filter((other) => linked(host, other)).length * 2 > all.length,
    /** Returns the containers of a stack whose programs respond. */
    responding: (stack: string): Located[] =>
      all.flatMap((host) =>
        [...host.docker.containers.values()]
          .filter((container) => container.labels?.stack === stack && host.docker.responds(container))
          .map((container) => ({ host, container })),
      ),
    /** Returns the host that has a container; undefined if it was removed. */
    hostOf: (container: Container): SimulatedMachine | undefined =>
      all.find(({ docker }) => docker.containers.get(container.name) === container),
    /** Cuts a host off for some time. */
    cutOff(host: SimulatedMachine, milliseconds: number): void {
      host.docker.state.isCutOff = true
      host.docker.endStreams()
      scheduler.after(milliseconds, () => (host.docker.state.isCutOff = false))
    },
  }
}

/**
 * Returns a router of the cluster that tenants share which reaches the primary; undefined if there is none.
 * @param isReady whether a router reaches the primary
 * @param client the container that connects; absent: a control plane
 */
export function sharedRouter(
  machines: Machines,
  regionStack: string,
  isReady: (host: SimulatedMachine, container: Container) => boolean,
  client?: Located,
): Located | undefined {
  const isReached = (router: Located) =>
    client === undefined
      ? router.host.docker.isReachable()
      : machines.reaches(client, router, networkName(regionStack, 'net'))
  return machines
    .responding(regionStack)
    .filter(({ container }) => container.labels?.service?.startsWith('router-'))
    .find((router) => isReached(router) && isReady(router.host, router.container))
}
