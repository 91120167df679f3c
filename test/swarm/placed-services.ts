// Compares the recorded hosts of tenants' services with the containers, volumes and networks of the hosts. Pure.
import type { Isolation } from '#control-plane/stacks/isolation.ts'
import { stackOfVolume, volumeName, volumePrefix } from '#control-plane/stacks/object-names.ts'
import { serviceVolumes } from '#control-plane/stacks/stack-for.ts'

/** A service of a tenant, and the host on which the control database has it. */
export interface PlacedService {
  tenantId: string
  isolation: Isolation
  service: string
  host: string
}

/** A container of a stack. */
interface FoundContainer {
  name: string
  stack: string
  service: string
  state: string
}

/** The objects of a host; of volumes and networks, the names. */
export interface HostObjects {
  host: string
  containers: readonly FoundContainer[]
  volumes: readonly string[]
  networks: readonly string[]
}

/** Whether a stack is a region's own, which has no placements. */
const isOfRegion = (stack: string) => stack.startsWith('region-')

/** Parses what `docker ps` prints in the format of `containerFormat`. */
export function parseContainers(text: string): FoundContainer[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', stack = '', service = '', state = ''] = line.split('|')
      return { name, stack, service, state }
    })
}

/** The format in which Docker lists the containers of stacks. */
export const containerFormat = '{{.Names}}|{{.Label "tenantry.stack"}}|{{.Label "tenantry.service"}}|{{.State}}'

/**
 * Returns the differences, each as a sentence; none if each service runs once, on its host, with its data there, and nothing else exists.
 * @param found the hosts that respond. What should be on another host is not checked
 */
export function differences(placed: readonly PlacedService[], found: readonly HostObjects[]): string[] {
  return found.flatMap((objects) => {
    const here = placed.filter(({ host }) => host === objects.host)
    const containers = containerDifferences(here, objects)
    return [...containers, ...volumeDifferences(here, objects), ...networkDifferences(placed, objects)].map(
      (text) => `${objects.host}: ${text}`,
    )
  })
}

function containerDifferences(here: readonly PlacedService[], { containers }: HostObjects): string[] {
  const isFor =
    ({ stack, service }: FoundContainer) =>
    (placed: PlacedService) =>
      placed.tenantId === stack && placed.service === service
  const unexpected = containers
    .filter((container) => !isOfRegion(container.stack) && !here.some(isFor(container)))
    .map(({ name, state }) => `The container ${name} (${state}) is not placed here.`)
  const missing = here.flatMap((placed) => {
    const own = containers.filter((container) => isFor(container)(placed))
    const shown = own.map(({ name, state }) => `${name} (${state})`).join(', ')
    return own.length === 1 && own[0]?.state === 'running'
      ? []
      : [`The service ${placed.service} of ${placed.tenantId} should be one running container, and is: ${shown}.`]
  })
  return [...unexpected, ...missing]
}

function volumeDifferences(here: readonly PlacedService[], { containers, volumes }: HostObjects): string[] {
  const data = here.flatMap(({ tenantId, isolation, service }) => {
    const volume = serviceVolumes(isolation)[service]
    return volume !== undefined && isData(volume) ? [volumeName(tenantId, volume)] : []
  })
  const missing = data.filter((name) => !volumes.includes(name)).map((name) => `The volume ${name} is missing.`)
  const remaining = volumes.filter((name) => {
    const stack = stackOfVolume(name)
    if (stack === undefined || isOfRegion(stack)) return false
    const container = /^(.*)-secrets$/.exec(name)?.[1]
    if (container !== undefined) return !containers.some((one) => one.name === container)
    if (isData(name.slice(volumePrefix(stack).length))) return !data.includes(name)
    return !here.some(({ tenantId }) => tenantId === stack)
  })
  return [...missing, ...remaining.map((name) => `The volume ${name} remains.`)]
}

/** Whether a volume of this name in its stack holds a database. */
function isData(volume: string): boolean {
  return /^data(-\d+)?$/.test(volume)
}

/** A network spans all hosts, so that it may be on one without a service of its tenant. */
function networkDifferences(placed: readonly PlacedService[], { networks }: HostObjects): string[] {
  const tenants = new Set(placed.map(({ tenantId }) => tenantId))
  const remaining = networks.filter((name) => {
    const stack = stackOfVolume(name)
    return stack !== undefined && !isOfRegion(stack) && !tenants.has(stack)
  })
  return remaining.map((name) => `The network ${name} remains.`)
}
