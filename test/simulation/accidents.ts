// Random faults around the reconciler: manual changes, crashed programs, restarts of the Engine, a full disk, missing images,
// and foreign objects that conflict with ours.
import type { Labels } from '#control-plane/engines/container-host.ts'
import { networkName, volumeName } from '#control-plane/stacks/object-names.ts'
import { parseRange, tenantSubnet } from '#control-plane/stacks/subnets.ts'
import type { Chance } from './chance.ts'
import { dockerCli, type Docker } from './docker.ts'
import type { Container } from './docker-objects.ts'
import { engineItself } from './programs.ts'
import type { Scheduler } from './scheduler.ts'

export interface AccidentsOptions {
  docker: Docker
  chance: Chance
  scheduler: Scheduler
  installation: string
  range: string
  /** IDs of the tenants that may be created. */
  ids: readonly string[]
}

/** Values for the fields of a container that no check reads. */
export const plain = {
  image: 'foreign:1',
  command: [],
  environment: {},
  user: '',
  scratch: {},
  published: [],
  health: { command: [], intervalSeconds: 1, timeoutSeconds: 1, retries: 1, startSeconds: 1 },
  resources: { memoryBytes: 1, cpuMillis: 1, pids: 1 },
  stopSeconds: 1,
}

/** Returns the changes of a container that people and its own program make. */
export function containerChanges(docker: Docker): ((container: Container) => void)[] {
  return [
    ({ name }) => docker.stopContainer(name, dockerCli),
    ({ id }) => docker.removeContainer(id, dockerCli),
    ({ name }) => docker.pauseContainer(name, dockerCli),
    (container) => docker.crash(container),
    (container) => docker.wedge(container),
    ({ name }) => docker.updateResources(name, { memoryBytes: 7, cpuMillis: 7, pids: 7 }, dockerCli),
    ({ name }) => docker.setRestartPolicy(name, 'no', dockerCli),
    ({ name, slots }) => {
      const [network] = slots.keys()
      if (network !== undefined) docker.leave(network, name, dockerCli)
    },
    (container) => {
      try {
        docker.startContainer(container.name, dockerCli)
      } catch {
        // The Engine rejects some starts.
      }
    },
  ]
}

export type Accidents = ReturnType<typeof createAccidents>

export function createAccidents({ docker, chance, scheduler, installation, range, ids }: AccidentsOptions) {
  const isOurs = (labels: Labels | undefined) => labels?.installation === installation
  const ourContainers = () => [...docker.containers.values()].filter(({ labels }) => isOurs(labels))
  const traceFault = (what: string) => scheduler.trace(`by hand: ${what}`)
  const foreign: (Labels | undefined)[] = [undefined, { installation: 'another', stack: 't_00000000000000000000' }]

  const removeVolume = (name: string) => {
    const users = [...docker.containers.values()].filter(({ spec }) =>
      spec.volumes.some(({ volume }) => volume === name),
    )
    for (const user of users) {
      docker.removeContainer(user.id, dockerCli)
      // A volume can be removed only when no container uses it.
      docker.containers.delete(user.name)
    }
    docker.removeVolume(name, dockerCli)
  }

  const onContainer = containerChanges(docker)

  const mishaps: (() => void)[] = [
    ...Array.from({ length: 6 }, () => () => {
      const containers = ourContainers()
      if (containers.length === 0) return
      const container = chance.pick(containers)
      const at = chance.below(onContainer.length)
      traceFault(`change ${at} of ${container.name}`)
      onContainer[at]?.(container)
    }),
    () => {
      const network = chance.pick([...docker.networks.values()])
      if (!isOurs(network.labels)) return
      traceFault(`remove network ${network.name}`)
      for (const { name } of docker.membersOf(network.id)) docker.leave(network.name, name, dockerCli)
      docker.removeNetwork(network.id, dockerCli)
    },
    () => {
      const attached = chance.pick([...docker.networks.values()])
      const [member] = docker.membersOf(attached.id)
      if (!isOurs(attached.labels) || member === undefined) return
      traceFault(`disconnect ${member.name} from ${attached.name}`)
      docker.leave(attached.name, member.name, dockerCli)
    },
    () => {
      if (!chance.happens(0.3)) return
      const volumes = [...docker.volumes.values()].filter(
        ({ labels, madeLate }) => isOurs(labels) && labels?.service === undefined && !madeLate,
      )
      if (volumes.length === 0) return
      const { name } = chance.pick(volumes)
      traceFault(`remove volume ${name}`)
      removeVolume(name)
      if (chance.happens(0.5) && !docker.state.isFull) {
        traceFault(`the Engine makes volume ${name} for a container`)
        docker.createVolume({ name, labels: undefined }, engineItself)
      }
    },
    () => {
      if (!chance.happens(0.3)) return
      const volumes = [...docker.volumes.values()].filter(({ labels, isCluster }) => isOurs(labels) && isCluster)
      if (volumes.length === 0) return
      const volume = chance.pick(volumes)
      traceFault(`empty volume ${volume.name}`)
      volume.homes.clear()
      volume.isCluster = false
      volume.mayBegin = false
      for (const container of docker.containers.values()) if (container.id === volume.lock) docker.crash(container)
    },
    () => {
      traceFault('the Engine restarts')
      docker.restart(chance.between(200, 8_000))
    },
    () => {
      traceFault('the disk is full')
      docker.state.isFull = true
      scheduler.after(chance.between(500, 20_000), () => (docker.state.isFull = false))
    },
    () => {
      const image = chance.pick(['postgres:1', 'runtime:1', 'runtime:2', 'gateway:1'])
      traceFault(`image ${image} is gone`)
      docker.missingImages.add(image)
      scheduler.after(chance.between(500, 30_000), () => docker.missingImages.delete(image))
    },
    () => docker.endStreams(),
  ]

  const plant = (what: string, work: () => void) => {
    traceFault(`a foreign ${what}`)
    try {
      work()
    } catch {
      // One of our objects has the name or the subnet already.
    }
  }
  const plantConflict: (() => void)[] = [
    () =>
      plant('volume with a name of ours', () => {
        const { files } = docker.createVolume(
          { name: volumeName(chance.pick(ids), chance.pick(['data', 'files'])), labels: chance.pick(foreign) },
          dockerCli,
        )
        files.add('theirs')
      }),
    () =>
      plant('network with a name of ours', () =>
        docker.createNetwork(
          {
            name: networkName(chance.pick(ids), 'net'),
            labels: chance.pick(foreign),
            subnet: `192.168.${chance.below(250)}.0/24`,
            internal: false,
            hostAddress: true,
          },
          dockerCli,
        ),
      ),
    () =>
      plant('network that the Engine does not show', () =>
        docker.hiddenSubnets.add(tenantSubnet(parseRange(range), chance.below(6))),
      ),
    () =>
      plant('network with a subnet of ours', () =>
        docker.createNetwork(
          {
            name: `foreign-${chance.hex(6)}`,
            labels: undefined,
            subnet: tenantSubnet(parseRange(range), chance.below(6)),
            internal: false,
            hostAddress: true,
          },
          dockerCli,
        ),
      ),
  ]

  return {
    happen: () => chance.pick(mishaps)(),
    /** Ends all faults: the disk has space again, and all images exist. */
    end(): void {
      docker.state.isFull = false
      docker.missingImages.clear()
    },
    /** Creates foreign objects next to ours, some of which conflict with ours. */
    plantForeign(): void {
      docker.createNetwork(
        { name: 'foreign-net', labels: undefined, subnet: '172.30.0.0/24', internal: false, hostAddress: true },
        dockerCli,
      )
      docker.createVolume({ name: 'tenantry-data', labels: undefined }, dockerCli)
      docker.createVolume(
        {
          name: 'tenantry-t_ffffffffffffffffffff-data',
          labels: { installation: 'another', stack: 't_ffffffffffffffffffff' },
        },
        dockerCli,
      )
      docker.createContainer(
        {
          ...plain,
          name: 'tenantry-t_ffffffffffffffffffff-runtime-01234567',
          labels: { installation: 'another', stack: 't_ffffffffffffffffffff', service: 'runtime' },
          volumes: [],
          networks: [{ network: 'foreign-net', aliases: [] }],
        },
        dockerCli,
      )
      docker.startContainer('tenantry-t_ffffffffffffffffffff-runtime-01234567', dockerCli)
      if (chance.happens(0.15)) chance.pick(plantConflict)()
    },
    /** Creates the objects of a tenant of ours that is deleted, or that the database does not know. @returns its ID */
    plantRemains(number: number): string {
      const stack = `t_${chance.hex(20)}`
      const labels = { installation, stack }
      docker.createVolume({ name: volumeName(stack, 'data'), labels }, dockerCli)
      docker.createNetwork(
        {
          name: networkName(stack, 'net'),
          labels,
          subnet: tenantSubnet(parseRange(range), number),
          internal: true,
          hostAddress: false,
        },
        dockerCli,
      )
      docker.createContainer(
        {
          ...plain,
          name: `tenantry-${stack}-postgres-01234567`,
          labels: { ...labels, service: 'postgres' },
          volumes: [{ volume: volumeName(stack, 'data'), path: '/var/lib/postgresql', readOnly: false }],
          networks: [{ network: networkName(stack, 'net'), aliases: [] }],
        },
        dockerCli,
      )
      docker.startContainer(`tenantry-${stack}-postgres-01234567`, dockerCli)
      return stack
    },
  }
}
