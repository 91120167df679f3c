// A Docker Engine in memory, with the behaviour that the reconciler depends on: conflicts of names, subnets, addresses and ports,
// rejected removals of used objects, and events. `onChange` receives every change.
import type { ContainerSpec, NetworkSpec, VolumeSpec } from '#control-plane/engines/container-host.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { Resources } from '#control-plane/stacks/stack.ts'
import type { Chance } from './chance.ts'
import { beginning, type Actor } from './control-plane.ts'
import {
  madeContainer,
  overlap,
  type Change,
  type Container,
  type Network,
  type Swarm,
  type TaggedEvent,
  type Volume,
} from './docker-objects.ts'
import { createPrograms, engineItself } from './programs.ts'
import type { Scheduler } from './scheduler.ts'

export interface DockerOptions {
  scheduler: Scheduler
  chance: Chance
  onChange: (change: Change, actor: Actor) => void
  /** Postgres creates a cluster in any empty volume. A planted defect. */
  beginsAnywhere: boolean
  /** The swarm of the host; absent on a single host. */
  swarm?: Swarm
}

/** A person who uses Docker's command line. */
export const dockerCli: Actor = { name: 'docker-cli', isLate: () => false }

export type Docker = ReturnType<typeof createDocker>

export function createDocker({ scheduler, chance, onChange, beginsAnywhere, swarm }: DockerOptions) {
  const containers = new Map<string, Container>()
  const networks = swarm?.networks ?? new Map<string, Network>()
  const everywhere = () => [...(swarm?.containers() ?? containers.values())]
  const volumes = new Map<string, Volume>()
  const listeners = new Set<(event: TaggedEvent) => void>()
  const streams = new Set<(reason: Error) => void>()
  const starts = new Set<(container: Container) => void>()
  const missingImages = new Set<string>()
  /** Subnets of networks that the Engine's driver has and the Engine does not show, as after a kill. */
  const hiddenSubnets = new Set<string>()
  const state = { isDown: false, isCutOff: false, isFull: false, changes: 0 }
  let ids = 0
  const newId = () => `${(++ids).toString(16).padStart(6, '0')}${chance.hex(6)}`

  const changed = (change: Change, actor: Actor) => {
    // Changes by the restart policy do not count as work of the control plane.
    if (actor !== engineItself) state.changes++
    onChange(change, actor)
    const { labels } = change.object
    if (
      labels === undefined ||
      change.kind === 'home' ||
      change.kind === 'cluster' ||
      (change.kind === 'volume' && change.what === 'changed')
    )
      return
    for (const listener of listeners)
      listener({ installation: labels.installation, stack: labels.stack, what: `${change.kind} ${change.what}` })
  }

  const rejected = (what: string, code: EngineError['code'], why: string) =>
    new EngineError(code, `Cannot ${what}: ${why}.`)
  const found = (name: string, what: string): Container => {
    const container = containers.get(name)
    if (container === undefined) throw rejected(what, 'NOT_FOUND', 'it does not exist')
    return container
  }
  const requireSpace = (what: string) => {
    if (state.isFull) throw rejected(what, 'DISK_FULL', 'the disk is full')
  }
  const networkById = (id: string) => [...networks.values()].find((network) => network.id === id)

  const { isRunning, responds, begin, halt, crash, endProgram } = createPrograms({
    scheduler,
    chance,
    containers,
    volumes,
    isDown: () => state.isDown,
    starts,
    changed,
    beginsAnywhere,
  })

  /** @throws EngineError when a network is missing, or an address or a port is taken */
  const requireResources = (container: Container, what: string) => {
    for (const [name, location] of container.slots) {
      const network = networkById(location.networkId)
      if (network === undefined) throw rejected(what, 'NOT_FOUND', 'it does not exist')
      const rival = everywhere().find(
        (other) =>
          other !== container &&
          isRunning(other) &&
          other.slots.get(name)?.networkId === location.networkId &&
          other.slots.get(name)?.address === location.address,
      )
      if (location.address !== undefined && rival !== undefined)
        throw rejected(what, 'ADDRESS_TAKEN', 'the address is in use')
    }
    const ports = new Set(container.spec.published.map(({ hostPort }) => hostPort))
    const rival = [...containers.values()].find(
      (other) =>
        other !== container && isRunning(other) && other.spec.published.some(({ hostPort }) => ports.has(hostPort)),
    )
    if (rival !== undefined) throw rejected(what, 'PORT_TAKEN', 'a published port is in use')
    // Like the Docker Engine, create missing volumes, without labels.
    for (const { volume } of container.spec.volumes)
      if (!volumes.has(volume)) makeVolume(volume, undefined, engineItself)
  }

  const makeVolume = (name: string, labels: Volume['labels'], actor: Actor): Volume => {
    const made: Volume = {
      name,
      labels,
      madeLate: actor.isLate(),
      isMadeByEngine: actor === engineItself,
      isCluster: false,
      mayBegin: false,
      homes: new Map(),
      files: new Set(),
      lock: undefined,
      waiting: [],
    }
    volumes.set(name, made)
    changed({ kind: 'volume', what: 'created', object: made }, actor)
    return made
  }

  const leave = (network: Network, container: Container, actor: Actor) => {
    if (container.slots.get(network.name)?.networkId !== network.id) return
    container.slots.delete(network.name)
    changed({ kind: 'network', what: 'left', object: network, container }, actor)
  }

  return {
    containers,
    networks,
    volumes,
    state,
    missingImages,
    hiddenSubnets,
    responds,
    isRunning,
    crash,
    /** Listeners that receive each container whose program begins to respond. */
    starts,

    /** Subscribes to events; `ended` receives the error that ends the stream. @returns a function that unsubscribes */
    listen(listener: (event: TaggedEvent) => void, ended: (reason: Error) => void): () => void {
      listeners.add(listener)
      streams.add(ended)
      return () => {
        listeners.delete(listener)
        streams.delete(ended)
      }
    },
    endStreams() {
      for (const ended of streams)
        ended(new EngineError('ENGINE_UNREACHABLE', 'Cannot follow events: the Docker Engine cannot be reached.'))
    },

    /** Whether callers reach the Engine. */
    isReachable: () => !state.isDown && !state.isCutOff,

    hasImage: (image: string) => !missingImages.has(image),

    createNetwork(
      { name, labels, subnet, internal }: Omit<NetworkSpec, 'labels'> & { labels: Network['labels'] },
      actor: Actor,
    ): void {
      const what = `create network ${name}`
      if (networks.has(name)) throw rejected(what, 'ENGINE_FAILED', 'the Docker Engine rejected the request (409)')
      if (
        [...hiddenSubnets, ...[...networks.values()].map((other) => other.subnet)].some((taken) =>
          overlap(taken, subnet),
        )
      )
        throw rejected(what, 'SUBNET_TAKEN', 'the subnet overlaps an existing one')
      const made: Network = { id: newId(), name, labels, subnet, internal, madeLate: actor.isLate() }
      networks.set(name, made)
      changed({ kind: 'network', what: 'created', object: made }, actor)
    },
    /** Removes a network unless a running container uses it. */
    removeNetwork(id: string, actor: Actor): 'removed' | 'in use' | 'absent' {
      const network = networkById(id)
      if (network === undefined) return 'absent'
      if (everywhere().some((container) => isRunning(container) && container.slots.get(network.name)?.networkId === id))
        return 'in use'
      networks.delete(network.name)
      changed({ kind: 'network', what: 'removed', object: network }, actor)
      return 'removed'
    },
    networkById,
    membersOf: (id: string) =>
      [...containers.values()].filter((container) =>
        [...container.slots.values()].some(({ networkId }) => networkId === id),
      ),
    join(
      networkName: string,
      containerName: string,
      aliases: readonly string[],
      address: string | undefined,
      actor: Actor,
    ): void {
      const what = `connect ${containerName} to network ${networkName}`
      const container = found(containerName, what)
      const network = networks.get(networkName)
      if (network === undefined) throw rejected(what, 'NOT_FOUND', 'it does not exist')
      if (container.slots.has(networkName))
        throw rejected(what, 'ENGINE_FAILED', 'the Docker Engine rejected the request (403)')
      if (container.state === 'removing')
        throw rejected(what, 'ENGINE_FAILED', 'the Docker Engine rejected the request (409)')
      container.slots.set(networkName, { networkId: network.id, aliases, address })
      changed({ kind: 'network', what: 'joined', object: network, container }, actor)
    },
    /** Disconnects a container. A container that is not connected causes no error. */
    leave(networkName: string, containerName: string, actor: Actor): void {
      const container = containers.get(containerName)
      const location = container?.slots.get(networkName)
      if (container === undefined || location === undefined) return
      const network = networkById(location.networkId)
      if (network === undefined) container.slots.delete(networkName)
      else leave(network, container, actor)
    },

    createVolume({ name, labels }: Omit<VolumeSpec, 'labels'> & { labels: Volume['labels'] }, actor: Actor): Volume {
      requireSpace(`create volume ${name}`)
      return volumes.get(name) ?? makeVolume(name, labels, actor)
    },
    removeVolume(name: string, actor: Actor): void {
      const volume = volumes.get(name)
      if (volume === undefined) return
      const isUsed = [...containers.values()].some(({ spec }) =>
        spec.volumes.some((mounted) => mounted.volume === name),
      )
      if (isUsed) throw rejected(`remove volume ${name}`, 'ENGINE_FAILED', 'it is in use')
      volumes.delete(name)
      changed({ kind: 'volume', what: 'removed', object: volume }, actor)
    },
    /** Permits the creation of a cluster in a volume. @throws EngineError when the volume is missing */
    permit(name: string, actor: Actor): void {
      requireSpace(`write files to volume ${name}`)
      const volume = volumes.get(name)
      if (volume === undefined)
        throw rejected(`write files to volume ${name}`, 'VOLUME_MISSING', 'the volume does not exist')
      volume.mayBegin = true
      changed({ kind: 'volume', what: 'changed', object: volume }, actor)
    },
    makeHome(volume: Volume, tenantId: string, actor: Actor): void {
      requireSpace('write to the database')
      volume.homes.set(tenantId, { isWhole: true })
      changed({ kind: 'home', what: 'created', object: volume, tenantId }, actor)
    },
    fill(name: string, files: readonly string[], actor: Actor): void {
      requireSpace(`write files to volume ${name}`)
      const volume = volumes.get(name)
      if (volume === undefined)
        throw rejected(`write files to volume ${name}`, 'VOLUME_MISSING', 'the volume does not exist')
      volume.files = new Set(files)
      changed({ kind: 'volume', what: 'changed', object: volume }, actor)
    },

    /** Creates a container. @returns whether the name was free */
    createContainer(spec: Omit<ContainerSpec, 'labels'> & { labels: Container['labels'] }, actor: Actor): boolean {
      const what = `create container ${spec.name}`
      if (missingImages.has(spec.image)) throw rejected(what, 'IMAGE_MISSING', 'the image does not exist')
      if (containers.has(spec.name)) return false
      requireSpace(what)
      const [first] = spec.networks
      const network = first === undefined ? undefined : networks.get(first.network)
      if (first !== undefined && network === undefined) throw rejected(what, 'NOT_FOUND', 'it does not exist')
      // Like the Docker Engine, create missing volumes, without labels.
      for (const { volume } of spec.volumes) if (!volumes.has(volume)) makeVolume(volume, undefined, engineItself)
      const made = madeContainer(newId(), spec, network, new Date(beginning + scheduler.now()).toISOString())
      containers.set(made.name, made)
      changed({ kind: 'container', what: 'created', object: made }, actor)
      return true
    },
    startContainer(name: string, actor: Actor): void {
      const what = `start container ${name}`
      const container = found(name, what)
      if (container.state === 'running' || container.state === 'restarting') return
      if (container.state === 'paused' || container.state === 'removing')
        throw rejected(what, 'ENGINE_FAILED', 'the Docker Engine rejected the request (409)')
      if (container.spec.command[0] === 'never-started')
        throw rejected(what, 'ENGINE_FAILED', 'the Docker Engine rejected the request (400)')
      requireResources(container, what)
      begin(container, actor)
    },
    stopContainer(name: string, actor: Actor): void {
      const container = found(name, `stop container ${name}`)
      container.wasStopped = true
      if (isRunning(container) || container.state === 'restarting') halt(container, 'exited', 0, actor)
    },
    pauseContainer(name: string, actor: Actor): void {
      const container = found(name, `pause container ${name}`)
      if (container.state !== 'running') return
      container.state = 'paused'
      changed({ kind: 'container', what: 'changed', object: container }, actor)
    },
    unpauseContainer(name: string, actor: Actor): void {
      const container = found(name, `unpause container ${name}`)
      if (container.state !== 'paused') return
      container.state = 'running'
      changed({ kind: 'container', what: 'changed', object: container }, actor)
    },
    updateResources(name: string, resources: Partial<Resources>, actor: Actor): void {
      const container = found(name, `change the limits of container ${name}`)
      container.resources = { ...container.resources, ...resources }
      changed({ kind: 'container', what: 'changed', object: container }, actor)
    },
    setRestartPolicy(name: string, policy: string, actor: Actor): void {
      const container = found(name, `change the restart policy of container ${name}`)
      container.restartPolicy = policy
      changed({ kind: 'container', what: 'changed', object: container }, actor)
    },
    /** Makes a container stop responding while it runs. Its health check fails after a while. */
    wedge(container: Container): void {
      container.isWedged = true
      const { run } = container
      scheduler.after(chance.between(1_000, 30_000), () => {
        if (container.run !== run || !container.isWedged || !isRunning(container)) return
        container.health = 'unhealthy'
        changed({ kind: 'container', what: 'changed', object: container }, engineItself)
      })
    },
    /** Removes a container, sometimes with a delay. */
    removeContainer(id: string, actor: Actor): void {
      const container = [...containers.values()].find((one) => one.id === id)
      if (container === undefined || container.state === 'removing') return
      const remove = () => {
        if (containers.get(container.name) !== container) return
        containers.delete(container.name)
        changed({ kind: 'container', what: 'removed', object: container }, actor)
      }
      const wasRunning = isRunning(container) || container.state === 'restarting'
      container.state = 'removing'
      if (wasRunning) endProgram(container)
      if (chance.happens(0.1)) {
        changed({ kind: 'container', what: 'changed', object: container }, actor)
        scheduler.after(chance.between(10, 1_500), remove)
      } else {
        remove()
      }
    },

    /** Stops all containers. After `milliseconds` the Engine is reachable and starts those that were not stopped on purpose. */
    restart(milliseconds: number): void {
      if (state.isDown) return
      state.isDown = true
      const wereRunning = [...containers.values()].filter(
        (container) => isRunning(container) || container.state === 'restarting',
      )
      for (const container of wereRunning) halt(container, 'exited', 137, engineItself)
      for (const ended of streams)
        ended(new EngineError('ENGINE_UNREACHABLE', 'Cannot follow events: the Docker Engine cannot be reached.'))
      scheduler.after(milliseconds, () => {
        state.isDown = false
        for (const container of wereRunning) {
          if (
            container.state !== 'exited' ||
            container.wasStopped ||
            container.restartPolicy === 'no' ||
            containers.get(container.name) !== container
          )
            continue
          try {
            requireResources(container, '')
            begin(container, engineItself)
            swarm?.returned(container)
          } catch {
            // The container stays stopped.
          }
        }
      })
    },
  }
}
