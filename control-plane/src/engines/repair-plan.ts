// The repair of single differences of a stack. It finds what a repair of one field also changes, and plans the steps for the
// chosen fields alone. Pure.
import { containerName, type Network, networkName, type Service, type Stack, volumeName } from '../stacks/index.ts'
import { type LimitChanges, type ObservedHost, restartPolicy } from './container-host.ts'
import {
  haltedStates,
  isAttached,
  networkSteps,
  rejectMissing,
  serviceSteps,
  staleSecrets,
  type Step,
  strayNetworks,
  volumeSteps,
} from './convergence-plan.ts'
import { type Difference, differences, shownContainer } from './drift.ts'
import { memberName } from './member-name.ts'
import { reachablePart } from './reachable-part.ts'
import { networksToLeave } from './shared-address.ts'

/** A field of a component to repair; null: the whole component. */
export interface RepairTarget {
  component: string
  field: string | null
}

/** Describes the repair of one difference. */
export interface Repair {
  /** Everything that is repaired: the field alone, or the smallest components that contain it. */
  targets: RepairTarget[]
  /** Whether requests to the tenant may fail or wait meanwhile. */
  interrupts: boolean
}

/** Reports whether a difference is among the targets. */
export function isTargeted(
  targets: readonly RepairTarget[],
  { component, field }: Pick<Difference, 'component' | 'field'>,
): boolean {
  return targets.some((target) => target.component === component && (target.field === null || target.field === field))
}

/** The limits that a host changes one by one, while the container runs. */
const limitFields: Readonly<Record<string, (service: Service) => LimitChanges>> = {
  memory_bytes: ({ resources }) => ({ memoryBytes: resources.memoryBytes }),
  cpu_millis: ({ resources }) => ({ cpuMillis: resources.cpuMillis }),
  pids: ({ resources }) => ({ pids: resources.pids }),
  restart_policy: () => ({ restartPolicy }),
}

/** Returns what the repair of one difference of the stack does. */
export function repairOf(stack: Stack, host: ObservedHost, { component, field }: Difference): Repair {
  const only = { targets: [{ component, field }], interrupts: false }
  const [, kind = 'service', name = component] = /^(network|volume|container)\/(.*)$/.exec(component) ?? []
  // A container that belongs to no service, or to a former specification, serves nothing.
  if (kind === 'container') return only
  if (kind === 'network') return field.startsWith('attached container ') ? only : networkRepair(stack, host, name)
  if (kind === 'volume') {
    const users = host.unlabelledVolumes.includes(volumeName(stack.id, name)) ? usersOf(stack, name) : []
    const targets = [{ component, field: null }, ...users.map((user) => ({ component: user.name, field: null }))]
    return { targets, interrupts: users.length > 0 }
  }
  const service = stack.services.find((one) => one.name === name)
  return service === undefined || stack.state === 'stopped' ? only : serviceRepair(stack, host, service, field)
}

/** A network is created again with everything that should be on it. */
function networkRepair(stack: Stack, host: ObservedHost, name: string): Repair {
  const users = stack.services.filter(({ networks }) => networks.some(({ network }) => network === name))
  const targets = [
    { component: `network/${name}`, field: null },
    ...users.flatMap((service) => attachmentFields(service, name).map((field) => ({ component: service.name, field }))),
  ]
  return { targets, interrupts: host.networks.some((network) => network.name === networkName(stack.id, name)) }
}

function serviceRepair(stack: Stack, host: ObservedHost, service: Service, field: string): Repair {
  const component = service.name
  const shown = shownContainer(stack, host, service)
  const whole = { targets: wholeService(stack, host, service), interrupts: isReplacedAtOnce(stack, host, service) }
  if (shown === undefined) return whole
  if (field in limitFields || strayNetworks(stack, service, shown).some((stray) => field === `network ${stray}`))
    return { targets: [{ component, field }], interrupts: false }
  const attachments = service.networks.filter(({ network }) => attachmentFields(service, network).includes(field))
  if (attachments.length > 0) {
    const targets = attachments.flatMap(({ network }) => attachmentTargets(host, stack, service, network))
    const interrupts = attachments.some(({ network }) => networkName(stack.id, network) in shown.networks)
    return { targets, interrupts }
  }
  // A container of a former specification is replaced instead of started.
  if (field !== 'state' || shown.name !== containerName(stack.id, service)) return whole
  if (shown.state === 'paused') return { targets: [{ component, field }], interrupts: false }
  if (haltedStates.has(shown.state) && shown.state !== 'dead') {
    // A container cannot start before it is on its networks.
    const missing = service.networks.filter((attachment) => !isAttached(stack, attachment, shown))
    const networks = missing.flatMap(({ network }) => attachmentTargets(host, stack, service, network))
    return { targets: [{ component, field }, ...networks], interrupts: false }
  }
  return whole
}

/** Returns the targets that put a service on a network, which may have to be created first. */
function attachmentTargets(host: ObservedHost, stack: Stack, service: Service, network: string): RepairTarget[] {
  const exists = host.networks.some(({ name }) => name === networkName(stack.id, network))
  if (!exists) return networkRepair(stack, host, network).targets
  return attachmentFields(service, network).map((field) => ({ component: service.name, field }))
}

/** Returns the names of the fields that one attachment of a service has in the list of differences. */
function attachmentFields({ networks }: Service, network: string): string[] {
  return networks
    .filter((attachment) => attachment.network === network)
    .flatMap(({ aliases }) => [
      `network ${network}`,
      ...aliases.map((alias) => `alias ${alias}`),
      `address on ${network}`,
    ])
}

/** A service needs its networks and volumes, so those that are absent are repaired first. */
function wholeService(stack: Stack, host: ObservedHost, service: Service): RepairTarget[] {
  const exists = (name: string) => host.networks.some((network) => network.name === networkName(stack.id, name))
  const absent = service.networks.filter(({ network }) => !exists(network))
  const volumes = stack.volumes.filter(({ name }) => name in service.volumes)
  return [
    { component: service.name, field: null },
    ...absent.flatMap(({ network }) => networkRepair(stack, host, network).targets),
    ...volumes.map(({ name }) => ({ component: `volume/${name}`, field: 'existence' })),
  ]
}

/** Whether a running container ends before the container that replaces it is healthy. */
function isReplacedAtOnce(stack: Stack, host: ObservedHost, service: Service): boolean {
  const running = host.containers.filter(({ labels, state }) => labels.service === service.name && state === 'running')
  const name = containerName(stack.id, service)
  return running.length > 0 && (service.replace === 'stop-first' || running.some((one) => one.name === name))
}

function usersOf({ services }: Stack, volume: string): Service[] {
  return services.filter(({ volumes }) => volume in volumes)
}

/**
 * Returns the steps that can be taken now for the targets; none once they are as specified. Other differences stay.
 * @throws EngineError VOLUME_MISSING
 */
export function planRepair(specified: Stack, host: ObservedHost, targets: readonly RepairTarget[]): Step[] {
  const stack = reachablePart(specified, host)
  const is = (component: string, field: string) => isTargeted(targets, { component, field })
  const volumes = stack.volumes.filter(({ name }) => is(`volume/${name}`, 'existence'))
  rejectMissing(stack, volumes, host)
  const bases = [
    ...stack.networks.flatMap((network) =>
      networkTargetSteps(stack, network, host, (field) => is(`network/${network.name}`, field)),
    ),
    ...volumes.flatMap((volume) => volumeSteps(stack, volume, host)),
  ]
  const strays = host.containers.flatMap(({ name, labels }): Step[] => {
    if (!is(`container/${name}`, 'existence')) return []
    const seconds = stack.services.find((service) => service.name === labels.service)?.stopSeconds ?? 10
    return [{ do: 'remove-container', container: name, seconds }]
  })
  // Containers depend on networks and volumes, so those come first.
  if (bases.some((step) => step.do !== 'attach-container')) return [...strays, ...bases]
  const services = stack.services.flatMap((service) => {
    if (stack.state === 'stopped') return is(service.name, 'state') ? stopSteps(stack, host, service) : []
    return targets.some(({ component, field }) => component === service.name && field === null)
      ? serviceSteps(stack, service, host)
      : fieldSteps(stack, host, service, (field) => is(service.name, field))
  })
  const steps = [...strays, ...bases, ...services]
  return steps.length > 0
    ? steps
    : staleSecrets(specified, host).filter(
        (step) => step.do === 'remove-volume' && is(`volume/${step.volume}`, 'existence'),
      )
}

function networkTargetSteps(
  stack: Stack,
  network: Network,
  host: ObservedHost,
  is: (field: string) => boolean,
): Step[] {
  const observed = host.networks.find(({ name }) => name === networkName(stack.id, network.name))
  if (observed === undefined) return is('existence') ? networkSteps(stack, network, host) : []
  // A repair of its subnet is always one of the whole network.
  if (is('subnet')) return networkSteps(stack, network, host)
  return network.attachedContainers
    .filter(
      (attached) => is(`attached container ${attached.alias}`) && !observed.members.includes(memberName(attached)),
    )
    .map((attached) => ({ do: 'attach-container', network: network.name, attached }))
}

function stopSteps(stack: Stack, host: ObservedHost, service: Service): Step[] {
  const shown = shownContainer(stack, host, service)
  if (shown === undefined || haltedStates.has(shown.state)) return []
  return [{ do: 'stop-container', container: shown.name, seconds: service.stopSeconds }]
}

/** Returns the steps for single fields of a service's container; none if it has no container. */
function fieldSteps(stack: Stack, host: ObservedHost, service: Service, is: (field: string) => boolean): Step[] {
  const shown = shownContainer(stack, host, service)
  if (shown === undefined) return []
  const { name: container } = shown
  const drifted = differences(stack, host).filter(({ component, field }) => component === service.name && is(field))
  const limits = drifted.flatMap(({ field }) => limitFields[field]?.(service) ?? [])
  const connections = service.networks
    .filter((attachment) => is(`network ${attachment.network}`) && !isAttached(stack, attachment, shown))
    .map(({ network }): Step => ({ do: 'connect-container', container, service: service.name, network }))
  // Another container has its address there. It is connected again after the next observation.
  const shared = networksToLeave(shown, host)
  const left = service.networks
    .filter(({ network }) => is(`address on ${network}`) && shared.includes(networkName(stack.id, network)))
    .map(({ network }) => networkName(stack.id, network))
  const strays = strayNetworks(stack, service, shown).filter((network) => is(`network ${network}`))
  const disconnections = [...left, ...strays].map((network): Step => ({
    do: 'disconnect-container',
    container,
    network,
  }))
  const changes = limits.reduce<LimitChanges>((sum, change) => ({ ...sum, ...change }), {})
  const steps: Step[] = [
    ...connections,
    ...disconnections,
    ...(limits.length === 0 ? [] : [{ do: 'update-resources', container, service: service.name, changes } as const]),
  ]
  if (!is('state')) return steps
  if (shown.state === 'paused') steps.push({ do: 'unpause-container', container })
  if (haltedStates.has(shown.state) && connections.length === 0) steps.push({ do: 'start-container', container })
  return steps
}
