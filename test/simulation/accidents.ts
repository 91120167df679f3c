// What goes wrong around the reconciler, at random: changes by hand, programs that die, an Engine that restarts, a full disk,
// images that are missing, strangers' objects in the way.
import type { Labels } from '#control-plane/engines/container-host.ts'
import { networkName, volumeName } from '#control-plane/stacks/object-names.ts'
import { parseRange, tenantSubnet } from '#control-plane/stacks/subnets.ts'
import type { Chance } from './chance.ts'
import { operator, type Docker } from './docker.ts'
import type { Container } from './docker-objects.ts'
import { engineItself } from './programs.ts'
import type { Scheduler } from './scheduler.ts'

export interface AccidentsOptions {
  docker: Docker
  chance: Chance
  scheduler: Scheduler
  installation: string
  range: string
  /** Tenants that may come to be. */
  ids: readonly string[]
}

/** Stands in for everything about a container that nobody looks at. */
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

export type Accidents = ReturnType<typeof createAccidents>

export function createAccidents({ docker, chance, scheduler, installation, range, ids }: AccidentsOptions) {
  const isOurs = (labels: Labels | undefined) => labels?.installation === installation
  const ourContainers = () => [...docker.containers.values()].filter(({ labels }) => isOurs(labels))
  const reported = (what: string) => scheduler.trace(`by hand: ${what}`)
  const foreign: (Labels | undefined)[] = [undefined, { installation: 'another', stack: 't_00000000000000000000' }]

  const removeVolume = (name: string) => {
    const users = [...docker.containers.values()].filter(({ spec }) =>
      spec.volumes.some(({ volume }) => volume === name),
    )
    for (const user of users) {
      docker.removeContainer(user.id, operator)
      // Whoever removes a volume waits until nobody uses it.
      docker.containers.delete(user.name)
    }
    docker.removeVolume(name, operator)
  }

  const onContainer: ((container: Container) => void)[] = [
    ({ name }) => docker.stopContainer(name, operator),
    ({ id }) => docker.removeContainer(id, operator),
    ({ name }) => docker.pauseContainer(name, operator),
    (container) => docker.crash(container),
    (container) => docker.wedge(container),
    ({ name }) => docker.updateResources(name, { memoryBytes: 7, cpuMillis: 7, pids: 7 }, operator),
    ({ name }) => docker.setRestartPolicy(name, 'no', operator),
    ({ name, slots }) => {
      const [network] = slots.keys()
      if (network !== undefined) docker.leave(network, name, operator)
    },
    (container) => {
      try {
        docker.startContainer(container.name, operator)
      } catch {
        // The Engine refuses it to people too.
      }
    },
  ]

  const mishaps: (() => void)[] = [
    ...Array.from({ length: 6 }, () => () => {
      const containers = ourContainers()
      if (containers.length === 0) return
      const container = chance.pick(containers)
      const at = chance.below(onContainer.length)
      reported(`change ${at} of ${container.name}`)
      onContainer[at]?.(container)
    }),
    () => {
      const network = chance.pick([...docker.networks.values()])
      if (!isOurs(network.labels)) return
      reported(`remove network ${network.name}`)
      for (const { name } of docker.membersOf(network.id)) docker.leave(network.name, name, operator)
      docker.removeNetwork(network.id, operator)
    },
    () => {
      const attached = chance.pick([...docker.networks.values()])
      const [member] = docker.membersOf(attached.id)
      if (!isOurs(attached.labels) || member === undefined) return
      reported(`disconnect ${member.name} from ${attached.name}`)
      docker.leave(attached.name, member.name, operator)
    },
    () => {
      if (!chance.happens(0.3)) return
      const volumes = [...docker.volumes.values()].filter(
        ({ labels, madeLate }) => isOurs(labels) && labels?.service === undefined && !madeLate,
      )
      if (volumes.length === 0) return
      const { name } = chance.pick(volumes)
      reported(`remove volume ${name}`)
      removeVolume(name)
      if (chance.happens(0.5)) {
        reported(`the Engine makes volume ${name} for a container`)
        docker.createVolume({ name, labels: undefined }, engineItself)
      }
    },
    () => {
      if (!chance.happens(0.3)) return
      const volumes = [...docker.volumes.values()].filter(({ labels, isCluster }) => isOurs(labels) && isCluster)
      if (volumes.length === 0) return
      const volume = chance.pick(volumes)
      reported(`empty volume ${volume.name}`)
      volume.homes.clear()
      volume.isCluster = false
      volume.mayBegin = false
      for (const container of docker.containers.values()) if (container.id === volume.lock) docker.crash(container)
    },
    () => {
      reported('the Engine restarts')
      docker.restart(chance.between(200, 8_000))
    },
    () => {
      reported('the disk is full')
      docker.state.isFull = true
      scheduler.after(chance.between(500, 20_000), () => (docker.state.isFull = false))
    },
    () => {
      const image = chance.pick(['postgres:1', 'runtime:1', 'runtime:2', 'gateway:1'])
      reported(`image ${image} is gone`)
      docker.missingImages.add(image)
      scheduler.after(chance.between(500, 30_000), () => docker.missingImages.delete(image))
    },
    () => docker.endStreams(),
  ]

  const plant = (what: string, work: () => void) => {
    reported(`a stranger's ${what}`)
    try {
      work()
    } catch {
      // Something of ours was there before.
    }
  }
  const inTheWay: (() => void)[] = [
    () =>
      plant('volume with a name of ours', () => {
        const { files } = docker.createVolume(
          { name: volumeName(chance.pick(ids), chance.pick(['data', 'files'])), labels: chance.pick(foreign) },
          operator,
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
          operator,
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
          operator,
        ),
      ),
  ]

  return {
    happen: () => chance.pick(mishaps)(),
    /** The disk has room, and images are there. */
    end(): void {
      docker.state.isFull = false
      docker.missingImages.clear()
    },
    /** Strangers' objects that are beside ours, and now and then in their way. */
    plantForeign(): void {
      docker.createNetwork(
        { name: 'foreign-net', labels: undefined, subnet: '172.30.0.0/24', internal: false, hostAddress: true },
        operator,
      )
      docker.createVolume({ name: 'tenantry-data', labels: undefined }, operator)
      docker.createVolume(
        {
          name: 'tenantry-t_ffffffffffffffffffff-data',
          labels: { installation: 'another', stack: 't_ffffffffffffffffffff' },
        },
        operator,
      )
      docker.createContainer(
        {
          ...plain,
          name: 'tenantry-t_ffffffffffffffffffff-runtime-01234567',
          labels: { installation: 'another', stack: 't_ffffffffffffffffffff', service: 'runtime' },
          volumes: [],
          networks: [{ network: 'foreign-net', aliases: [] }],
        },
        operator,
      )
      docker.startContainer('tenantry-t_ffffffffffffffffffff-runtime-01234567', operator)
      if (chance.happens(0.15)) chance.pick(inTheWay)()
    },
    /** What is left of a tenant of ours: of one that was deleted here, or of one that this database knows nothing of. @returns its id */
    plantRemains(number: number): string {
      const stack = `t_${chance.hex(20)}`
      const labels = { installation, stack }
      docker.createVolume({ name: volumeName(stack, 'data'), labels }, operator)
      docker.createNetwork(
        {
          name: networkName(stack, 'net'),
          labels,
          subnet: tenantSubnet(parseRange(range), number),
          internal: true,
          hostAddress: false,
        },
        operator,
      )
      docker.createContainer(
        {
          ...plain,
          name: `tenantry-${stack}-postgres-01234567`,
          labels: { ...labels, service: 'postgres' },
          volumes: [{ volume: volumeName(stack, 'data'), path: '/var/lib/postgresql', readOnly: false }],
          networks: [{ network: networkName(stack, 'net'), aliases: [] }],
        },
        operator,
      )
      docker.startContainer(`tenantry-${stack}-postgres-01234567`, operator)
      return stack
    },
  }
}
