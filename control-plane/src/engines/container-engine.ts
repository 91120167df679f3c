// The engine over container hosts. It observes, plans, takes the steps, and repeats this until no step remains.
import {
  type Service,
  type Stack,
  containerName,
  isContainerName,
  networkName,
  secretsVolumeName,
  volumeName,
} from '../stacks/index.ts'
import type { ContainerHost, ContainerSpec, ObservedContainer, ObservedHost, Ownership } from './container-host.ts'
import { guardedVolumes, planSteps, type Step } from './convergence-plan.ts'
import type { Engine, EngineName } from './engine.ts'
import { EngineError } from './engine-error.ts'
import type { Hosts } from './hosts.ts'
import { planRepair } from './repair-plan.ts'
import { createRemoval } from './removal.ts'
import { settleAll } from './settle-all.ts'

interface ContainerEngineOptions {
  name: EngineName
  installation: string
  hosts: Hosts
  /** Waits; tests pass a simulated clock's function. */
  sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

/** Maximum number of rounds. It exceeds what any stack needs, so a plan that never ends is reported as a defect. */
const maxPolls = 60
const healthPollMilliseconds = 150
const healthTimeoutMilliseconds = 60_000

/**
 * Creates the engine of a region that runs its services as containers. It stores nothing between two calls: it reads what
 * exists from the hosts each time.
 */
export function createContainerEngine({ name, installation, hosts, sleep }: ContainerEngineOptions): Engine {
  const owner = (stack: string): Ownership & { stack: string } => ({ installation, stack })

  const serviceOf = (stack: Stack, service: string): Service => {
    const found = stack.services.find((candidate) => candidate.name === service)
    if (found === undefined) throw new Error(`The stack ${stack.id} has no service "${service}".`)
    return found
  }
  const networkOf = (stack: Stack, network: string) => {
    const found = stack.networks.find((candidate) => candidate.name === network)
    if (found === undefined) throw new Error(`The stack ${stack.id} has no network "${network}".`)
    return found
  }

  const createNetwork = (stack: Stack, network: string, signal: AbortSignal) => {
    const { subnet, internal, hostAddress, assigned, isEncrypted } = networkOf(stack, network)
    const spec = { name: networkName(stack.id, network), labels: owner(stack.id), subnet, internal, hostAddress }
    const range = assigned === undefined ? {} : { assigned }
    return hosts.createNetwork({ ...spec, ...range, ...(isEncrypted === true ? { isEncrypted } : {}) }, signal)
  }

  const createContainer = async (stack: Stack, service: Service, signal: AbortSignal) => {
    const host = hosts.at(service.host)
    const secrets = Object.entries(service.secrets).map(([file, secret]) => [file, secret.reveal()] as const)
    if (secrets.length > 0) {
      const volume = secretsVolumeName(stack.id, service)
      const labels = { ...owner(stack.id), service: service.name }
      await host.createVolume({ name: volume, labels }, signal)
      await host.writeFiles(volume, service.image, service.user, Object.fromEntries(secrets), labels, signal)
    }
    for (const { name } of guardedVolumes(stack, service).filter(({ mustExist }) => !mustExist)) {
      const volume = volumeName(stack.id, name)
      const labels = { ...owner(stack.id), service: service.name }
      await host.addFiles(volume, service.image, service.user, { [permissionFile]: `${volume}\n` }, labels, signal)
    }
    await host.createContainer(containerSpec(installation, stack, service), signal)
  }

  const isHealthy = async (container: string, service: Service, signal: AbortSignal) => {
    const { code } = await hosts.at(service.host).exec(container, service.health.command, { signal })
    return code === 0
  }

  const awaitHealth = async (container: string, service: Service, signal: AbortSignal) => {
    for (let waited = 0; waited < healthTimeoutMilliseconds; waited += healthPollMilliseconds) {
      if (await isHealthy(container, service, signal).catch(() => false)) return
      await sleep(healthPollMilliseconds, signal)
    }
    throw new EngineError('UNHEALTHY', `The new ${service.name} did not become healthy. The old one keeps running.`)
  }

  const retire = async (stack: Stack, host: ContainerHost, container: string, seconds: number, signal: AbortSignal) => {
    await host.stopContainer(container, seconds, signal).catch(unlessAbsent)
    await host.removeContainer(container, owner(stack.id), signal)
  }

  /**
   * Starts a container. It removes one that its host has lost track of, which can be neither started nor stopped, and one with a network
   * that was removed while its host did not respond; the next round creates it again.
   */
  const start = async (stack: Stack, host: ContainerHost, container: string, signal: AbortSignal) => {
    try {
      await host.startContainer(container, signal)
    } catch (error) {
      if (!(error instanceof EngineError && (error.code === 'CONTAINER_LOST' || error.code === 'NOT_FOUND')))
        throw error
      await host.removeContainer(container, owner(stack.id), signal)
    }
  }

  /** @param observed the observation from which the step was planned */
  const applyStep = async (stack: Stack, step: Step, observed: ObservedHost, signal: AbortSignal): Promise<void> => {
    /** Returns the host of an observed container or volume. */
    const hostOf = (name: string) =>
      hosts.at([...observed.containers, ...observed.volumes].find((object) => object.name === name)?.host)
    switch (step.do) {
      case 'create-network':
        return createNetwork(stack, step.network, signal)
      case 'replace-network':
        return hosts.removeNetwork(networkName(stack.id, step.network), owner(stack.id), signal)
      case 'create-volume': {
        const host = hosts.at(stack.volumes.find(({ name }) => name === step.volume)?.host)
        return host.createVolume({ name: volumeName(stack.id, step.volume), labels: owner(stack.id) }, signal)
      }
      case 'attach-container':
        return hosts
          .at(step.attached.host)
          .connect(
            networkName(stack.id, step.network),
            step.attached.container,
            [step.attached.alias],
            step.attached.address,
            signal,
          )
      case 'detach-container': {
        const { container, host } = step.attached
        return hosts.at(host).disconnect(networkName(stack.id, step.network), container, signal)
      }
      case 'create-container': {
        const service = serviceOf(stack, step.service)
        await createContainer(stack, service, signal)
        return start(stack, hosts.at(service.host), containerName(stack.id, service), signal)
      }
      case 'start-container':
        return start(stack, hostOf(step.container), step.container, signal)
      case 'unpause-container':
        return hostOf(step.container).unpauseContainer(step.container, signal)
      case 'update-resources':
        return hostOf(step.container).updateResources(step.container, step.changes, signal)
      case 'connect-container': {
        const attachment = serviceOf(stack, step.service).networks.find(({ network }) => network === step.network)
        return hostOf(step.container).connect(
          networkName(stack.id, step.network),
          step.container,
          attachment?.aliases ?? [],
          attachment?.address,
          signal,
        )
      }
      case 'disconnect-container':
        return hostOf(step.container).disconnect(step.network, step.container, signal)
      case 'stop-container':
        return hostOf(step.container).stopContainer(step.container, step.seconds, signal)
      case 'remove-container':
        return retire(stack, hostOf(step.container), step.container, step.seconds, signal)
      case 'take-over': {
        const service = serviceOf(stack, step.service)
        await awaitHealth(step.container, service, signal)
        await settleAll(step.from.map((old) => retire(stack, hostOf(old), old, service.stopSeconds, signal)))
        return
      }
      case 'remove-volume':
        return (step.host === undefined ? hostOf(step.volume) : hosts.at(step.host)).removeVolume(
          step.volume,
          owner(stack.id),
          signal,
        )
    }
  }

  /** Observes, plans, and takes the steps, until no step remains. */
  const applyPlan = async (
    stack: Stack,
    plan: (observed: ObservedHost) => Step[],
    edge: (side: 'before' | 'after', steps: readonly Step[]) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void> => {
    for (let poll = 0; poll < maxPolls; poll++) {
      const observed = await hosts.observe(owner(stack.id), signal)
      const steps = plan(observed)
      if (steps.length === 0) return
      await edge('before', steps)
      await settleAll(steps.map((step) => applyStep(stack, step, observed, signal)))
      await edge('after', steps)
    }
    throw new EngineError('ENGINE_FAILED', `The services did not converge after ${maxPolls} rounds.`)
  }

  /**
   * Returns the containers of a service, the newest first. There are two while one is replaced. One that a host starts again when it
   * returns is older than the one that was created elsewhere meanwhile.
   */
  const containersOf = async (stackId: string, service: string, signal: AbortSignal): Promise<ObservedContainer[]> => {
    const { containers } = await hosts.observe(owner(stackId), signal)
    return containers
      .filter(({ name, labels }) => labels.service === service && isContainerName(name, stackId, service))
      .sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))
  }

  const runningContainer = async (stackId: string, service: string, signal: AbortSignal) => {
    const found = (await containersOf(stackId, service, signal)).find(({ state }) => state === 'running')
    if (found === undefined) throw new EngineError('NOT_FOUND', `No container of ${service} is running.`)
    return { host: hosts.at(found.host), container: found.name }
  }

  return {
    name,
    installation,
    hostIds: hosts.ids,
    isDown: (id) => hosts.isDown(id),
    info: (signal, id) => (id === undefined ? hosts : hosts.at(id)).info(signal),

    async image(reference, signal) {
      const image = await hosts.image(reference, signal)
      if (image === undefined)
        throw new EngineError('IMAGE_MISSING', `The image "${reference}" does not exist on the host.`)
      return image
    },

    observe: (stackId, signal) =>
      hosts.observe({ installation, ...(stackId === undefined ? {} : { stack: stackId }) }, signal),

    converge: (stack, signal, edge = () => undefined, held = new Set(), areReplaced = false) =>
      applyPlan(stack, (observed) => planSteps(stack, observed, held, areReplaced), edge, signal),

    repair: (stack, targets, signal, edge = () => undefined) =>
      applyPlan(stack, (observed) => planRepair(stack, observed, targets), edge, signal),

    ...createRemoval(hosts, owner),

    async exec(stackId, service, command, options) {
      const { host, container } = await runningContainer(stackId, service, options.signal)
      return host.exec(container, command, options)
    },
    async *execStream(stackId, service, command, options) {
      const { host, container } = await runningContainer(stackId, service, options.signal)
      yield* host.execStream(container, command, options)
    },
    async *logs(stackId, service, options, signal) {
      const [newest] = await containersOf(stackId, service, signal)
      if (newest === undefined) throw new EngineError('NOT_FOUND', `There is no container of ${service}.`)
      yield* hosts.at(newest.host).logs(newest.name, options, signal)
    },

    async stats(stackId, signal) {
      const { containers } = await hosts.observe(owner(stackId), signal)
      const live = containers.filter(
        ({ name, state, labels }) => state === 'running' && isContainerName(name, stackId, labels.service ?? ''),
      )
      return Object.fromEntries(
        await Promise.all(
          live.map(
            async ({ name, host, labels }) => [labels.service ?? '', await hosts.at(host).stats(name, signal)] as const,
          ),
        ),
      )
    },

    async volumeBytes(stackId, signal) {
      const bytes = await hosts.volumeBytes(owner(stackId), signal)
      const prefix = volumeName(stackId, '')
      return Object.fromEntries(Object.entries(bytes).map(([volume, size]) => [volume.slice(prefix.length), size]))
    },

    events: (signal) => hosts.events({ installation }, signal),
  }
}

/**
 * Names that Postgres' entrypoint knows (images/postgres/entrypoint.sh): the file that permits it to initialize an
 * empty volume, and the variable that names that volume.
 */
const permissionFile = 'initialize'
const guardedVariable = 'TENANTRY_VOLUME'

/**
 * Returns the variables that name guarded volumes. They follow from the container's name, so they are not part of the
 * service's specification and never cause a replacement.
 */
function guardedEnvironment(stack: Stack, service: Service): Readonly<Record<string, string>> {
  return Object.fromEntries(
    guardedVolumes(stack, service).map(({ name }) => [guardedVariable, volumeName(stack.id, name)]),
  )
}

function containerSpec(installation: string, stack: Stack, service: Service): ContainerSpec {
  const secrets =
    Object.keys(service.secrets).length === 0
      ? []
      : [{ volume: secretsVolumeName(stack.id, service), path: '/run/secrets', readOnly: true }]
  return {
    name: containerName(stack.id, service),
    labels: { installation, stack: stack.id, service: service.name, spec: containerName(stack.id, service).slice(-8) },
    image: service.image,
    command: service.command,
    environment: { ...service.environment, ...guardedEnvironment(stack, service) },
    user: service.user,
    volumes: [
      ...Object.entries(service.volumes).map(([volume, path]) => ({
        volume: volumeName(stack.id, volume),
        path,
        readOnly: false,
      })),
      ...secrets,
    ],
    scratch: service.scratch,
    networks: service.networks.map(({ network, ...rest }) => ({ network: networkName(stack.id, network), ...rest })),
    published: service.published,
    health: service.health,
    resources: service.resources,
    stopSeconds: service.stopSeconds,
  }
}

function unlessAbsent(error: unknown): void {
  if (!(error instanceof EngineError) || error.code !== 'NOT_FOUND') throw error
}
