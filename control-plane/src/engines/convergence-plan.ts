// Computes the steps from what exists of a stack to what should exist. Pure. Each round plans again from a fresh observation,
// until no step remains.
import {
  type AttachedContainer,
  type Service,
  type Stack,
  type Volume,
  containerName,
  isClusterMember,
  networkName,
  secretsVolumeName,
  volumeName,
} from '../stacks/index.ts'
import { type LimitChanges, restartPolicy, type ObservedContainer, type ObservedHost } from './container-host.ts'
import { EngineError } from './engine-error.ts'
import { returnedContainers, staleCopies, withoutReturned } from './moved-services.ts'
import { memberName } from './member-name.ts'
import { reachablePart } from './reachable-part.ts'
import { leavesAddress, networksToLeave } from './shared-address.ts'

/**
 * One change on a host. Containers are named by their names there; networks, volumes and services by those of the
 * stack.
 */
export type Step =
  | { do: 'create-network'; network: string }
  | { do: 'replace-network'; network: string }
  | { do: 'create-volume'; volume: string }
  | { do: 'attach-container'; network: string; attached: AttachedContainer }
  | { do: 'detach-container'; network: string; attached: AttachedContainer }
  | { do: 'create-container'; service: string }
  | { do: 'start-container'; container: string }
  | { do: 'unpause-container'; container: string }
  | { do: 'update-resources'; container: string; service: string; changes: LimitChanges }
  | { do: 'connect-container'; container: string; service: string; network: string }
  | { do: 'disconnect-container'; container: string; network: string }
  | { do: 'stop-container'; container: string; seconds: number }
  | { do: 'remove-container'; container: string; seconds: number }
  /** Waits until the new container is healthy, then removes the containers that it replaces. */
  | { do: 'take-over'; container: string; service: string; from: readonly string[] }
  /** The host is named where another one may have a volume of the same name. */
  | { do: 'remove-volume'; volume: string; host?: string }

/** States in which a container runs no process and can be started. */
export const haltedStates: ReadonlySet<ObservedContainer['state']> = new Set(['created', 'exited', 'dead'])

const none: ReadonlySet<string> = new Set()

/**
 * Returns the steps that can be taken now; none if everything is as specified.
 * @param held names of services whose containers and volumes stay as they are
 * @param areReplaced whether containers and volumes on former hosts of services are removed, because others have their data
 * @throws EngineError VOLUME_MISSING
 */
export function planSteps(specified: Stack, observed: ObservedHost, held = none, areReplaced = false): Step[] {
  const stack = reachablePart(specified, observed)
  const returned = returnedContainers(stack, observed)
  const host = withoutReturned(stack, observed)
  rejectMissing(stack, stack.volumes, host)
  const services = new Set(specified.services.map(({ name }) => name))
  const unknown = host.containers.filter(({ labels }) => !services.has(labels.service ?? ''))
  const isStopped = stack.state === 'stopped'
  const steps: Step[] = [...unknown, ...(areReplaced && !isStopped ? returned : [])].map(({ name }) => ({
    do: 'remove-container',
    container: name,
    seconds: 10,
  }))

  // What is on a former host leaves an address first, because no step changes it later.
  const leaving = isStopped ? [] : returned.flatMap((container) => leavingSteps(container, observed))
  if (leaving.length > 0) return leaving
  const networks = stack.networks.flatMap((network) => networkSteps(stack, network, host))
  const volumes = stack.volumes
    .filter((volume) => !isHeld(stack, volume, held))
    .flatMap((volume) => volumeSteps(stack, volume, host))
  steps.push(...networks, ...volumes)
  // Containers depend on networks and volumes, so those come first.
  if (networks.some((step) => step.do !== 'attach-container') || volumes.length > 0) return steps
  // What runs on former hosts stops with the others of its kind: a member there could become the primary alone.
  if (isStopped) steps.push(...stoppingSteps(specified, observed))
  else
    for (const service of stack.services) if (!held.has(service.name)) steps.push(...serviceSteps(stack, service, host))
  // Containers that are held, on a former host, or of a stopped stack, stay as they are and may need their secrets.
  const areFree = areReplaced || returned.length === 0
  if (steps.length === 0 && stack.state === 'running' && held.size === 0 && areFree) {
    const copies = (areReplaced ? staleCopies(stack, host) : []).map(({ name, host: id }): Step => ({
      do: 'remove-volume',
      volume: name,
      ...(id === undefined ? {} : { host: id }),
    }))
    steps.push(...staleSecrets(specified, host), ...copies)
  }
  return steps
}

/** Rejects the loss of a volume that holds data. @throws EngineError VOLUME_MISSING */
export function rejectMissing(stack: Stack, volumes: readonly Volume[], host: ObservedHost): void {
  const missing = volumes.find((volume) => volume.mustExist && !hasVolume(stack, volume, host))
  if (missing === undefined) return
  const replaced = isReplaced(stack, missing, host) ? ' Docker has created an unlabelled volume of that name.' : ''
  const gone = `The volume "${missing.name}" and its data are gone.`
  throw new EngineError('VOLUME_MISSING', `${gone} No service is started on an empty volume.${replaced}`)
}

/** Whether all services that use the volume are held. */
function isHeld(stack: Stack, { name }: Volume, held: ReadonlySet<string>): boolean {
  const users = stack.services.filter(({ volumes }) => name in volumes)
  return users.length > 0 && users.every((service) => held.has(service.name))
}

/** Returns the steps that make a volume of the stack exist; none if it does. */
export function volumeSteps(stack: Stack, volume: Volume, host: ObservedHost): Step[] {
  if (hasVolume(stack, volume, host)) return []
  const users = isReplaced(stack, volume, host) ? containersOn(stack, volume, host) : []
  if (users.length > 0) return users
  return [{ do: 'create-volume', volume: volume.name }]
}

/** Reports whether the host has an unlabelled volume of this name, which blocks the stack's own. */
function isReplaced(stack: Stack, { name }: Volume, host: ObservedHost): boolean {
  return host.unlabelledVolumes.includes(volumeName(stack.id, name))
}

/** Returns the steps that remove the containers of a volume, which cannot be removed while one uses it. */
function containersOn(stack: Stack, { name }: Volume, host: ObservedHost): Step[] {
  const users = stack.services.filter(({ volumes }) => name in volumes)
  return users.flatMap((service) =>
    host.containers
      .filter(({ labels }) => labels.service === service.name)
      .map((container): Step => ({ do: 'remove-container', container: container.name, seconds: service.stopSeconds })),
  )
}

/** Returns the volumes of a service that its program initializes only with permission. */
export function guardedVolumes({ volumes }: Stack, service: Service): Volume[] {
  return volumes.filter(({ name, isGuarded }) => isGuarded && name in service.volumes)
}

/** Whether a volume of the stack exists, on the host where it should be. */
export function hasVolume(stack: Stack, { name, host }: Volume, { volumes }: ObservedHost): boolean {
  return volumes.some((volume) => volume.name === volumeName(stack.id, name) && volume.host === host)
}

/** Returns the steps that make a network as specified; none if it is. */
export function networkSteps(stack: Stack, network: Stack['networks'][number], host: ObservedHost): Step[] {
  const observed = host.networks.find(({ name }) => name === networkName(stack.id, network.name))
  if (observed === undefined) return [{ do: 'create-network', network: network.name }]
  if (observed.subnet !== network.subnet || observed.internal !== network.internal)
    return [{ do: 'replace-network', network: network.name }]
  const names = new Set(network.attachedContainers.map(memberName))
  // It gets another address when the next round attaches it again. A service that has the address then continues.
  const leaving = network.attachedContainers.find(
    (attached) => attached.address === undefined && leavesAddress(observed, memberName(attached), names),
  )
  if (leaving !== undefined) return [{ do: 'detach-container', network: network.name, attached: leaving }]
  return network.attachedContainers
    .filter((attached) => !observed.members.includes(memberName(attached)))
    .map((attached) => ({ do: 'attach-container', network: network.name, attached }))
}

/** Returns the next steps for one service of a running stack, whose networks and volumes exist; none if it is as specified. */
export function serviceSteps(stack: Stack, service: Service, host: ObservedHost): Step[] {
  const name = containerName(stack.id, service)
  const all = host.containers.filter(({ labels }) => labels.service === service.name)
  const current = all.find((container) => container.name === name)
  const others = all.filter((container) => container.name !== name)
  const leaving = all.flatMap((container) => leavingSteps(container, host))
  if (leaving.length > 0) return leaving
  const removeOthers = others.map((other): Step => ({
    do: 'remove-container',
    container: other.name,
    seconds: service.stopSeconds,
  }))

  // A replaced container also goes if the current one exists, which cannot get healthy while the other holds what both use.
  if (service.replace === 'stop-first' && others.length > 0) return removeOthers
  if (current === undefined) return [{ do: 'create-container', service: service.name }]
  // Without this volume the host would start the container on an empty one.
  const secrets = secretsVolumeName(stack.id, service)
  if (Object.keys(service.secrets).length > 0 && !host.volumes.some((volume) => volume.name === secrets)) {
    return [{ do: 'remove-container', container: name, seconds: service.stopSeconds }]
  }
  const repairs = currentSteps(stack, service, current)
  if (repairs.length > 0) return repairs
  return others.length === 0
    ? []
    : [{ do: 'take-over', container: name, service: service.name, from: others.map((other) => other.name) }]
}

/** Returns the steps by which a container leaves an address that another one has. The next round connects it again. */
function leavingSteps(container: ObservedContainer, host: ObservedHost): Step[] {
  return networksToLeave(container, host).map((network) => ({
    do: 'disconnect-container',
    container: container.name,
    network,
  }))
}

/**
 * Stops the last service first, and the others after it has ended, because it may need them until then. The members of a cluster stop
 * together: if they stopped one after the other, Patroni would record the last one alone as a member with all commits, and without the data
 * of that one the cluster could never elect a primary again.
 */
function stoppingSteps(stack: Stack, host: ObservedHost): Step[] {
  const last = stack.services.findLast((service) => stepsToStop(stack, service, host).length > 0)
  if (last === undefined) return []
  const together = isClusterMember(last.name) ? stack.services.filter(({ name }) => isClusterMember(name)) : [last]
  return together.flatMap((service) => stepsToStop(stack, service, host))
}

function stepsToStop(stack: Stack, service: Service, host: ObservedHost): Step[] {
  const name = containerName(stack.id, service)
  const own = host.containers.filter(({ labels }) => labels.service === service.name)
  return own.flatMap((container): Step[] => {
    if (container.name !== name)
      return [{ do: 'remove-container', container: container.name, seconds: service.stopSeconds }]
    return haltedStates.has(container.state)
      ? []
      : [{ do: 'stop-container', container: name, seconds: service.stopSeconds }]
  })
}

function currentSteps(stack: Stack, service: Service, current: ObservedContainer): Step[] {
  if (
    current.state === 'dead' ||
    current.state === 'removing' ||
    (current.state === 'running' && current.health === 'unhealthy')
  ) {
    return [{ do: 'remove-container', container: current.name, seconds: service.stopSeconds }]
  }
  // Its volume may have been emptied. The volume holds no data yet, and the next container brings a new permission.
  if (current.state === 'restarting' && guardedVolumes(stack, service).some(({ mustExist }) => !mustExist)) {
    return [{ do: 'remove-container', container: current.name, seconds: service.stopSeconds }]
  }
  const steps: Step[] = []
  for (const attachment of service.networks) {
    const { network } = attachment
    if (!isAttached(stack, attachment, current))
      steps.push({ do: 'connect-container', container: current.name, service: service.name, network })
  }
  for (const network of strayNetworks(stack, service, current))
    steps.push({ do: 'disconnect-container', container: current.name, network })
  const { memoryBytes, cpuMillis, pids } = service.resources
  const is = current.resources
  if (
    is.memoryBytes !== memoryBytes ||
    is.cpuMillis !== cpuMillis ||
    is.pids !== pids ||
    current.restartPolicy !== restartPolicy
  ) {
    const changes = { memoryBytes, cpuMillis, pids, restartPolicy } as const
    steps.push({ do: 'update-resources', container: current.name, service: service.name, changes })
  }
  if (current.state === 'paused') steps.push({ do: 'unpause-container', container: current.name })
  // A container cannot start before it is on its networks.
  if (haltedStates.has(current.state) && steps.length === 0)
    steps.push({ do: 'start-container', container: current.name })
  return steps
}

/** Whether a container is on a network of its service, with the names and the address that it should have there. */
export function isAttached(
  stack: Stack,
  { network, aliases, address }: Service['networks'][number],
  container: ObservedContainer,
): boolean {
  const attached = container.networks[networkName(stack.id, network)]
  if (attached === undefined || !aliases.every((alias) => attached.aliases.includes(alias))) return false
  // The host does not report the fixed address of a stopped container.
  return container.state !== 'running' || address === undefined || attached.address === address
}

/** Returns the networks, by their names on the host, that a container is on although its service is not. */
export function strayNetworks(stack: Stack, service: Service, container: ObservedContainer): string[] {
  if (service.isAttached) return []
  const own = new Set(service.networks.map(({ network }) => networkName(stack.id, network)))
  // `none` is the Engine's name for the absence of a network.
  return Object.keys(container.networks).filter((network) => network !== 'none' && !own.has(network))
}

/** Returns the steps that remove secrets of specifications from which no container is made any more. */
export function staleSecrets(stack: Stack, host: ObservedHost): Step[] {
  const live = new Set(stack.services.map((service) => secretsVolumeName(stack.id, service)))
  return host.volumes
    .filter(({ name, labels }) => labels.service !== undefined && !live.has(name))
    .map(({ name }) => ({ do: 'remove-volume', volume: name }))
}
