// The calls of the simulated ContainerHost that concern networks.
import type { ContainerHost, Labels, Ownership } from '#control-plane/engines/container-host.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { LinkedHost } from '#control-plane/engines/swarm/host-link.ts'
import type { Actor, ControlPlane } from './control-plane.ts'
import type { Docker } from './docker.ts'
import { ownerOf } from './docker-objects.ts'

/** Sends a request to the Engine. @param takes its maximum duration in milliseconds without faults */
export type HostRequest = <T>(
  what: string,
  signal: AbortSignal,
  effect: (actor: Actor) => T,
  takes?: number,
) => Promise<T>

/** @throws EngineError FOREIGN_OBJECT for an object that is not the owner's */
export type RejectForeign = (
  kind: string,
  object: { name: string; labels: Labels | undefined },
  owner: Ownership,
) => void

interface SimulatedNetworksOptions {
  docker: Docker
  caller: Pick<ControlPlane, 'clock'>
  request: HostRequest
  rejectForeign: RejectForeign
  /** Whether the host is one of the managers of a swarm with a leader; absent without a swarm. */
  isManager: (() => boolean) | undefined
}

export function createSimulatedNetworks({
  docker,
  caller,
  request,
  rejectForeign,
  isManager,
}: SimulatedNetworksOptions): Pick<
  LinkedHost,
  'connect' | 'disconnect' | 'disconnectAll' | 'createNetwork' | 'removeNetwork'
> {
  const requireManager = (what: string) => {
    if (isManager?.() === false) throw new EngineError('NOT_A_MANAGER', `Cannot ${what}: the swarm has no leader.`)
  }

  const connect: ContainerHost['connect'] = async (network, name, aliases, address, signal) => {
    const what = `connect ${name} to ${network}`
    const present = await request(`${what}: check`, signal, () => {
      const found = docker.containers.get(name)
      if (found === undefined) throw new EngineError('NOT_FOUND', `Cannot ${what}: it does not exist.`)
      const location = found.slots.get(network)
      const there = docker.networks.get(network)
      if (location === undefined) return 'absent'
      if (there === undefined) throw new EngineError('NOT_FOUND', `Cannot ${what}: it does not exist.`)
      const isRight =
        location.networkId === there.id &&
        aliases.every((alias) => location.aliases.includes(alias)) &&
        (address ?? location.address) === location.address
      return isRight ? 'right' : 'wrong'
    })
    if (present === 'right') return
    if (present === 'wrong')
      await request(`disconnect ${name} from ${network}`, signal, (actor) => docker.leave(network, name, actor))
    await request(what, signal, (actor) => docker.join(network, name, aliases, address, actor))
  }

  const disconnectMembers = async (id: string, name: string, signal: AbortSignal) => {
    const members = await request(`list members of ${name}`, signal, () =>
      docker.membersOf(id).map((member) => member.name),
    )
    for (const member of members) {
      await request(`disconnect ${member} from ${name}`, signal, (actor) => {
        const network = docker.networkById(id)
        if (network !== undefined) docker.leave(network.name, member, actor)
      })
    }
  }

  /** Returns the ID of the owner's network; undefined if it is absent. */
  const idOf = (name: string, owner: Ownership, signal: AbortSignal) =>
    request(`inspect network ${name}`, signal, () => {
      const found = docker.networks.get(name)
      if (found !== undefined) rejectForeign('network', found, owner)
      return found?.id
    })

  return {
    connect,
    disconnect: (network, name, signal) =>
      request(`disconnect ${name} from ${network}`, signal, (actor) => docker.leave(network, name, actor)),

    async disconnectAll(name, owner, signal) {
      const id = await idOf(name, owner, signal)
      if (id !== undefined) await disconnectMembers(id, name, signal)
    },
    async createNetwork(spec, signal) {
      const isThere = () => {
        const found = docker.networks.get(spec.name)
        if (found !== undefined) rejectForeign('network', found, ownerOf(spec.labels))
        return found !== undefined
      }
      if (await request(`inspect network ${spec.name}`, signal, isThere)) return
      await request(
        `create network ${spec.name}`,
        signal,
        (actor) => {
          requireManager(`create network ${spec.name}`)
          docker.createNetwork(spec, actor)
        },
        60,
      )
    },
    async removeNetwork(name, owner, signal) {
      const id = await idOf(name, owner, signal)
      if (id === undefined) return
      for (let attempt = 1; attempt <= 5; attempt++) {
        await disconnectMembers(id, name, signal)
        const outcome = await request(`remove network ${name}`, signal, (actor) => {
          requireManager(`remove network ${name}`)
          return docker.removeNetwork(id, actor)
        })
        if (outcome !== 'in use') return
        await caller.clock.sleep(100, signal)
      }
      throw new EngineError(
        'ENGINE_FAILED',
        `Cannot remove network ${name}: the Docker Engine rejected the request (403)`,
      )
    },
  }
}
