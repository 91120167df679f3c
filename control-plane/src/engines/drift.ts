// Compares what exists of a stack with what should exist, field by field, for an operator. Pure. It compares names,
// states and hashes only, and never a service's environment or secrets.
import {
  type Network,
  type Service,
  type Stack,
  containerName,
  networkName,
  secretsVolumeName,
  volumeName,
} from '../stacks/index.ts'
import { restartPolicy, type ObservedContainer, type ObservedHost } from './container-host.ts'
import { hasVolume, strayNetworks } from './convergence-plan.ts'
import { memberName } from './member-name.ts'
import { reachablePart } from './reachable-part.ts'
import { networksToLeave } from './shared-address.ts'

export type DriftValue = string | number | boolean | null

/** One field of a stack that differs from its specification. */
export interface Difference {
  /** A service's name, `network/NAME`, `volume/NAME`, or `container/NAME` for one that belongs to no service. */
  component: string
  field: string
  desired: DriftValue
  observed: DriftValue
}

const halted: ReadonlySet<ObservedContainer['state']> = new Set(['created', 'exited', 'dead'])

/**
 * Compares a stack with what exists of it. The parts on hosts that did not respond are not compared.
 * @param host observation of this stack alone
 * @returns no difference if everything is as specified
 */
export function differences(specified: Stack, host: ObservedHost): Difference[] {
  const stack = reachablePart(specified, host)
  return [
    ...stack.networks.flatMap((network) => networkDifferences(stack, network, host)),
    ...missingVolumes(stack, host),
    ...staleVolumes(specified, host),
    ...stack.services.flatMap((service) => serviceDifferences(stack, service, host)),
    ...unknownContainers(specified, host),
  ]
}

/** One field to compare. */
type Field = [field: string, desired: DriftValue, observed: DriftValue]

function differing(component: string, fields: readonly Field[]): Difference[] {
  return fields
    .filter(([, desired, observed]) => desired !== observed)
    .map(([field, desired, observed]) => ({ component, field, desired, observed }))
}

function presence(component: string, isDesired: boolean, isObserved: boolean): Difference[] {
  const word = (is: boolean) => (is ? 'present' : 'absent')
  return differing(component, [['existence', word(isDesired), word(isObserved)]])
}

function networkDifferences(stack: Stack, network: Network, host: ObservedHost): Difference[] {
  const component = `network/${network.name}`
  const observed = host.networks.find(({ name }) => name === networkName(stack.id, network.name))
  if (observed === undefined) return presence(component, true, false)
  const attachedContainers = network.attachedContainers.map((attached): Field => [
    `attached container ${attached.alias}`,
    'attached',
    observed.members.includes(memberName(attached)) ? 'attached' : 'detached',
  ])
  return differing(component, [
    ['subnet', network.subnet, observed.subnet],
    ['internal', network.internal, observed.internal],
    ...attachedContainers,
  ])
}

function missingVolumes(stack: Stack, host: ObservedHost): Difference[] {
  return stack.volumes
    .filter((volume) => !hasVolume(stack, volume, host))
    .flatMap(({ name }) => {
      const observed = host.unlabelledVolumes.includes(volumeName(stack.id, name)) ? 'unlabelled' : 'absent'
      return differing(`volume/${name}`, [['existence', 'present', observed]])
    })
}

function staleVolumes(stack: Stack, host: ObservedHost): Difference[] {
  // Containers of a stopped stack stay as they are and may need their secrets.
  if (stack.state === 'stopped') return []
  const live = new Set(stack.services.map((service) => secretsVolumeName(stack.id, service)))
  return host.volumes
    .filter(({ name, labels }) => labels.service !== undefined && !live.has(name))
    .flatMap(({ name }) => presence(`volume/${name}`, false, true))
}

function unknownContainers(stack: Stack, host: ObservedHost): Difference[] {
  const services = new Set(stack.services.map(({ name }) => name))
  return host.containers
    .filter(({ labels }) => !services.has(labels.service ?? ''))
    .flatMap(({ name }) => presence(`container/${name}`, false, true))
}

/** Returns the container that is compared with a service: its current one, otherwise one of another specification. */
export function shownContainer(
  stack: Stack,
  { containers }: ObservedHost,
  service: Service,
): ObservedContainer | undefined {
  const own = containers.filter(({ labels }) => labels.service === service.name)
  return own.find(({ name }) => name === containerName(stack.id, service)) ?? own[0]
}

function serviceDifferences(stack: Stack, service: Service, host: ObservedHost): Difference[] {
  const name = containerName(stack.id, service)
  const shown = shownContainer(stack, host, service)
  const rest = host.containers
    .filter((container) => container.labels.service === service.name && container !== shown)
    .flatMap((container) => presence(`container/${container.name}`, false, true))
  if (stack.state === 'stopped')
    return [...(shown === undefined ? [] : stoppedDifferences(service, shown, shown.name === name)), ...rest]
  if (shown === undefined) return presence(service.name, true, false)
  return [
    ...differing(service.name, [
      ['specification', specOf(name), specOf(shown.name)],
      ...runningFields(stack, service, shown, networksToLeave(shown, host)),
    ]),
    ...rest,
  ]
}

function specOf(container: string): string {
  return container.slice(-8)
}

/** Compares the state of a stopped service, and no other field. */
function stoppedDifferences(service: Service, { name, state }: ObservedContainer, isCurrent: boolean): Difference[] {
  if (!isCurrent) return presence(`container/${name}`, false, true)
  return differing(service.name, [['state', 'stopped', halted.has(state) ? 'stopped' : state]])
}

/** @param left networks that the container leaves because another one has its address there */
function runningFields(stack: Stack, service: Service, is: ObservedContainer, left: readonly string[]): Field[] {
  const { memoryBytes, cpuMillis, pids } = service.resources
  return [
    ['state', 'running', is.state],
    // A container that has just started is not known to be unhealthy. The health of one that is not running is stale.
    ['health', 'healthy', is.state === 'running' && is.health === 'unhealthy' ? 'unhealthy' : 'healthy'],
    // `name@sha256:…` is a registry's digest, which an engine does not report for a container.
    ...(service.image.startsWith('sha256:') ? [['image', service.image, is.imageId] satisfies Field] : []),
    ['memory_bytes', memoryBytes, is.resources.memoryBytes],
    ['cpu_millis', cpuMillis, is.resources.cpuMillis],
    ['pids', pids, is.resources.pids],
    ['restart_policy', restartPolicy, is.restartPolicy],
    ...service.networks.flatMap((attachment) => attachmentFields(stack, attachment, is, left)),
    ...strayNetworks(stack, service, is).map((network): Field => [`network ${network}`, 'detached', 'attached']),
  ]
}

function attachmentFields(
  stack: Stack,
  { network, aliases, address }: Service['networks'][number],
  is: ObservedContainer,
  left: readonly string[],
): Field[] {
  const attachment = is.networks[networkName(stack.id, network)]
  if (left.includes(networkName(stack.id, network))) return [[`address on ${network}`, 'unique', 'shared']]
  if (attachment === undefined) return [[`network ${network}`, 'attached', 'detached']]
  const aliasFields = aliases.map((alias): Field => [
    `alias ${alias}`,
    'present',
    attachment.aliases.includes(alias) ? 'present' : 'absent',
  ])
  // The host does not report the fixed address of a stopped container.
  return address === undefined || is.state !== 'running'
    ? aliasFields
    : [...aliasFields, [`address on ${network}`, address, attachment.address]]
}
