// The simulated ContainerHost. Each call sends the same requests to the Engine as the real one, and each request may be lost,
// hang, or be its caller's last.
import {
  type ContainerHost,
  type ContainerSpec,
  type Labels,
  type ObservedContainer,
  type Ownership,
} from '#control-plane/engines/container-host.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { Actor } from './control-plane.ts'
import { clusterOf, isEmpty, isNamedLike, isOwned, ownerOf, type Container } from './docker-objects.ts'
import type { LinkedHost } from '#control-plane/engines/swarm/host-link.ts'
import type { CommandResult } from './home-programs.ts'
import { receivedEvents, type EventOptions } from './simulated-events.ts'
import { createSimulatedNetworks, type HostRequest, type RejectForeign } from './simulated-networks.ts'

export interface SimulatedHostOptions extends EventOptions {
  /** False makes names alone decide which objects are ours. A planted defect. */
  checksLabels: boolean
  installation: string
  /** Runs a command in a container. @throws EngineError */
  run: (container: Container, command: readonly string[], input: string, actor: Actor) => CommandResult
  /** Whether it reports addresses that were assigned twice. A planted defect if not. */
  reportsAddresses?: boolean
  /** Whether this host is one of the managers of a swarm with a leader, which create and remove its networks; absent without a swarm. */
  isManager?: () => boolean
}

const timeout = 30_000

export function createSimulatedHost({
  docker,
  caller,
  chance,
  scheduler,
  eventFaults,
  checksLabels,
  installation,
  run,
  reportsAddresses = true,
  isManager,
}: SimulatedHostOptions): LinkedHost {
  const request: HostRequest = (what, signal, effect, takes = 15) =>
    caller.call(
      what,
      (actor) => {
        if (!docker.isReachable()) throw unreachable(what)
        return effect(actor)
      },
      { signal, timeout, takes, failure: () => unreachable(what) },
    )

  const labelsOf = (object: { name: string; labels: Labels | undefined }): Labels | undefined => {
    if (checksLabels) return object.labels
    const stack = /^tenantry-(t_[0-9a-f]+)-/.exec(object.name)?.[1]
    return stack === undefined
      ? object.labels
      : { installation, stack, ...(object.labels?.service === undefined ? {} : { service: object.labels.service }) }
  }
  const ours = (object: { name: string; labels: Labels | undefined }, owner: Ownership) =>
    isOwned(labelsOf(object), owner)
  const rejectForeign: RejectForeign = (kind, object, owner) => {
    if (!ours(object, owner))
      throw new EngineError(
        'FOREIGN_OBJECT',
        `A ${kind} named "${object.name}" exists that does not belong to Tenantry.`,
      )
  }
  const requireVolume = (what: string, name: string, owner: Ownership) => {
    const found = docker.volumes.get(name)
    if (found === undefined || (found.labels === undefined && !ours(found, owner)))
      throw new EngineError('VOLUME_MISSING', `Cannot ${what}: the volume "${name}" does not exist.`)
    rejectForeign('volume', found, owner)
  }
  const container = (id: string) => [...docker.containers.values()].find((one) => one.id === id)

  const observed = (found: Container): ObservedContainer => ({
    id: found.id,
    name: found.name,
    labels: labelsOf(found) ?? { installation: '', stack: '' },
    state: found.state,
    health: found.health,
    exitCode: found.exitCode,
    startedAt: found.startedAt,
    createdAt: found.createdAt,
    restarts: found.restarts,
    outOfMemory: false,
    imageId: found.spec.image,
    resources: { ...found.resources },
    restartPolicy: found.restartPolicy,
    networks: Object.fromEntries(
      [...found.slots]
        .filter(([name, { networkId }]) => (docker.networks.get(name)?.id ?? networkId) === networkId)
        .map(([name, { aliases, address }]) => [
          name,
          { aliases, address: address ?? (docker.isRunning(found) ? 'any' : '') },
        ]),
    ),
  })

  const networks = createSimulatedNetworks({ docker, caller, request, rejectForeign, isManager })

  const removeContainer: ContainerHost['removeContainer'] = async (name, owner, signal) => {
    const id = await request(`inspect container ${name}`, signal, () => {
      const found = docker.containers.get(name)
      if (found !== undefined) rejectForeign('container', found, owner)
      return found?.id
    })
    if (id === undefined) return
    await request(`remove container ${name}`, signal, (actor) => docker.removeContainer(id, actor), 60)
    for (let attempt = 0; attempt < 50; attempt++) {
      if (await request(`is container ${name} gone`, signal, () => container(id) === undefined)) return
      await caller.clock.sleep(200, signal)
    }
    throw new EngineError(
      'ENGINE_FAILED',
      `Cannot remove container ${name}: the Docker Engine rejected the request (409)`,
    )
  }

  const createContainer: ContainerHost['createContainer'] = async (spec, signal) => {
    const checkVolumes = () => {
      for (const { volume } of spec.volumes)
        requireVolume(`create container ${spec.name}`, volume, ownerOf(spec.labels))
    }
    await request(`inspect volumes of ${spec.name}`, signal, checkVolumes)
    const made = await request(
      `create container ${spec.name}`,
      signal,
      (actor) => docker.createContainer(spec, actor),
      60,
    )
    if (!made) {
      await request(`inspect container ${spec.name}`, signal, () => {
        const found = docker.containers.get(spec.name)
        if (found === undefined)
          throw new EngineError(
            'ENGINE_FAILED',
            `Cannot create container ${spec.name}: the Docker Engine rejected the request (409)`,
          )
        rejectForeign('container', found, ownerOf(spec.labels))
      })
    }
    try {
      await request(`inspect volumes of ${spec.name} again`, signal, checkVolumes)
    } catch (error) {
      await removeContainer(spec.name, ownerOf(spec.labels), signal)
      throw error
    }
    for (const { network, aliases, address } of spec.networks)
      await networks.connect(network, spec.name, aliases, address, signal)
  }

  const removeUnlabelledVolume: ContainerHost['removeUnlabelledVolume'] = async (name, signal) => {
    await request(`measure volume ${name}`, signal, () => {
      const found = docker.volumes.get(name)
      if (found !== undefined && (found.labels !== undefined || !isEmpty(found)))
        throw new EngineError(
          'FOREIGN_OBJECT',
          `A volume named "${name}" exists that does not belong to Tenantry and holds data.`,
        )
    })
    await request(`remove volume ${name}`, signal, (actor) => {
      try {
        docker.removeVolume(name, actor)
      } catch {
        throw new EngineError(
          'FOREIGN_OBJECT',
          `A volume named "${name}" exists that does not belong to Tenantry and is in use.`,
        )
      }
    })
  }

  const withHelper = async (
    volume: string,
    image: string,
    labels: Labels,
    signal: AbortSignal,
    write: (actor: Actor) => void,
  ): Promise<void> => {
    const name = `${volume}-files`
    const spec: ContainerSpec = {
      name,
      labels,
      image,
      command: ['never-started'],
      environment: {},
      user: '',
      volumes: [{ volume, path: '/tenantry/files', readOnly: false }],
      scratch: {},
      networks: [],
      published: [],
      health: { command: [], intervalSeconds: 1, timeoutSeconds: 1, retries: 1, startSeconds: 1 },
      resources: { memoryBytes: 2 ** 24, cpuMillis: 100, pids: 1 },
      stopSeconds: 1,
    }
    await removeContainer(name, ownerOf(labels), signal)
    try {
      await request(`create container ${name}`, signal, (actor) => docker.createContainer(spec, actor))
      await request(`inspect volume ${volume} again`, signal, () =>
        requireVolume(`write files to volume ${volume}`, volume, ownerOf(labels)),
      )
      await request(`write files to ${volume}`, signal, (actor) => write(actor))
    } finally {
      await removeContainer(name, ownerOf(labels), signal)
    }
  }

  return {
    ...networks,
    ping: (signal) => request('ping', signal, () => undefined, 5),
    info: async () => ({
      name: 'simulated',
      apiVersion: '1.41',
      memoryBytes: 2 ** 34,
      cpus: 8,
      disk: undefined,
      warnings: [],
    }),

    async observe(owned, signal) {
      const [ids, networks, volumes, unlabelledVolumes] = await Promise.all([
        request('list containers', signal, () =>
          [...docker.containers.values()].filter((one) => ours(one, owned)).map(({ id }) => id),
        ),
        request('list networks', signal, () => [...docker.networks.values()].filter((one) => ours(one, owned))),
        request('list volumes', signal, () =>
          [...docker.volumes.values()]
            .filter((one) => ours(one, owned))
            .map((volume) => ({ name: volume.name, labels: labelsOf(volume) ?? { installation: '', stack: '' } })),
        ),
        request('list unlabelled volumes', signal, () =>
          [...docker.volumes.values()]
            .filter(({ name, labels }) => labels === undefined && isNamedLike(name, owned.stack))
            .map(({ name }) => name),
        ),
      ])
      const [containers, members] = await Promise.all([
        Promise.all(
          ids.map((id) =>
            request(
              'inspect container',
              signal,
              () => {
                const found = container(id)
                return found === undefined ? undefined : observed(found)
              },
              5,
            ),
          ),
        ),
        networks.length === 0
          ? new Map<string, Container[]>()
          : request('list members', signal, () => new Map(networks.map(({ id }) => [id, docker.membersOf(id)]))),
      ])
      return {
        containers: containers.filter((one) => one !== undefined),
        networks: networks.map((network) => ({
          id: network.id,
          name: network.name,
          labels: labelsOf(network) ?? { installation: '', stack: '' },
          subnet: network.subnet,
          internal: network.internal,
          members: (members.get(network.id) ?? []).map(({ name }) => name),
          addresses: reportsAddresses ? addressesOn(network.name, members.get(network.id) ?? []) : {},
        })),
        volumes,
        unlabelledVolumes,
      }
    },
    image: (reference, signal) =>
      request(`inspect image ${reference}`, signal, () =>
        docker.hasImage(reference) ? { id: reference, component: undefined } : undefined,
      ),

    async createVolume(spec, signal) {
      const create = () => request(`create volume ${spec.name}`, signal, (actor) => docker.createVolume(spec, actor))
      const found = await create()
      if (ours(found, ownerOf(spec.labels))) return
      if (found.labels !== undefined) rejectForeign('volume', found, ownerOf(spec.labels))
      await removeUnlabelledVolume(spec.name, signal)
      rejectForeign('volume', await create(), ownerOf(spec.labels))
    },
    createContainer,
    startContainer: (name, signal) =>
      request(`start container ${name}`, signal, (actor) => docker.startContainer(name, actor), 100),
    unpauseContainer: (name, signal) =>
      request(`unpause container ${name}`, signal, (actor) => docker.unpauseContainer(name, actor)),
    stopContainer: (name, _seconds, signal) =>
      request(`stop container ${name}`, signal, (actor) => docker.stopContainer(name, actor), 300),
    updateResources: (name, { restartPolicy: policy, ...resources }, signal) =>
      request(`update container ${name}`, signal, (actor) => {
        docker.updateResources(name, resources, actor)
        if (policy !== undefined) docker.setRestartPolicy(name, policy, actor)
      }),
    writeFiles: (volume, image, _user, files, labels, signal) =>
      withHelper(volume, image, labels, signal, (actor) => docker.fill(volume, Object.keys(files), actor)),
    addFiles: (volume, image, _user, _files, labels, signal) =>
      withHelper(volume, image, labels, signal, (actor) => docker.permit(volume, actor)),
    removeContainer,
    async removeVolume(name, owner, signal) {
      const isThere = await request(`inspect volume ${name}`, signal, () => {
        const found = docker.volumes.get(name)
        if (found !== undefined) rejectForeign('volume', found, owner)
        return found !== undefined
      })
      if (isThere) await request(`remove volume ${name}`, signal, (actor) => docker.removeVolume(name, actor))
    },
    removeUnlabelledVolume,

    async exec(name, command, { signal, input = '' }) {
      const isReadinessCheck = command[0] === 'sh'
      for (let attempt = 0; ; attempt++) {
        const { code, stdout } = await request(
          `run ${isReadinessCheck ? 'pg_isready' : command.slice(0, 2).join(' ')} in ${name}`,
          signal,
          (actor) => {
            const found = docker.containers.get(name)
            if (found === undefined) throw new EngineError('NOT_FOUND', `Cannot run in ${name}: it does not exist.`)
            if (found.state !== 'running')
              throw new EngineError('ENGINE_FAILED', `Cannot run in ${name}: it is not running.`)
            return run(found, command, typeof input === 'string' ? input : '', actor)
          },
          30,
        )
        if (!isReadinessCheck || code === 0 || attempt === 100) return { code, stdout, stderr: '' }
        await caller.clock.sleep(300, signal)
      }
    },
    execStream: () => {
      throw new EngineError('ENGINE_FAILED', 'The simulation has no streams.')
    },
    /** Yields the log of a Postgres that was started on an empty volume without permission. */
    async *logs(name, _options, signal) {
      const isRejected = await request(`read the log of ${name}`, signal, () => {
        const volume = docker.volumes.get(clusterOf(docker.containers.get(name) ?? { spec: { volumes: [] } }) ?? '')
        return volume !== undefined && !volume.isCluster && !volume.mayBegin
      })
      if (isRejected) yield { at: '', stream: 'stderr', text: 'the volume holds no data directory' }
    },
    stats: async () => ({ cpuNanoseconds: 0, memoryBytes: 0 }),
    volumeBytes: async () => ({}),
    events(owned, signal) {
      const follow = () => request('follow events', signal, () => undefined)
      return receivedEvents({ docker, caller, chance, scheduler, eventFaults }, follow, owned.installation, signal)
    },
  }
}

/** Returns the addresses that were assigned twice. The others are all different. */
function addressesOn(network: string, members: readonly Container[]): Record<string, string> {
  const running = members.filter(({ state }) => state === 'running' || state === 'paused')
  const assigned = running.map(({ name, slots }) => [name, slots.get(network)?.shared] as const)
  return Object.fromEntries(assigned.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

const unreachable = (what: string) =>
  new EngineError('ENGINE_UNREACHABLE', `Cannot ${what}: the Docker Engine cannot be reached.`)
