// The interface of an engine, which makes a stack exist and reports what exists.
import type { ContainerSettings, Isolation, OtherContainer, ProcessSettings, Stack } from '../stacks/index.ts'
import type {
  ContainerStats,
  ExecOptions,
  ExecResult,
  HostEvent,
  HostImage,
  HostInfo,
  LogLine,
  LogOptions,
  ObservedHost,
} from './container-host.ts'
import type { Step } from './convergence-plan.ts'
import type { RepairTarget } from './repair-plan.ts'

export type EngineName = 'process' | 'docker' | 'swarm'

/** Parts of a stack, by their names. */
export interface RemovedParts {
  services: readonly string[]
  volumes: readonly string[]
  /** Containers of other stacks, by their names on their hosts. */
  attachedContainers: readonly OtherContainer[]
}

/** An engine of a region. All calls throw `EngineError`. */
export interface Engine {
  readonly name: EngineName
  /** Value of the installation's label on everything that the engine creates. */
  readonly installation: string
  /** IDs of its hosts; none for an engine with one host. */
  readonly hostIds: readonly string[]
  /** Whether a host of several did not respond at the last call. */
  isDown(id: string): boolean
  /** Reads what a host is and how much it has. @param id absent on an engine with one host */
  info(signal: AbortSignal, id?: string): Promise<HostInfo>
  /** Returns the image to which a reference currently resolves. @throws EngineError IMAGE_MISSING */
  image(reference: string, signal: AbortSignal): Promise<HostImage>
  /**
   * Returns what exists of a stack, found by its labels, or of all stacks if no ID is given. Hosts that do not respond are
   * named in the result.
   */
  observe(stackId: string | undefined, signal: AbortSignal): Promise<ObservedHost>
  /**
   * Makes what exists equal to the stack. It may be called again after an interruption at any point. `edge` is called
   * before and after each round of steps. The containers and volumes of `held` services stay as they are. Those on former hosts of
   * services are removed only if `areReplaced`.
   */
  converge(
    stack: Stack,
    signal: AbortSignal,
    edge?: (side: 'before' | 'after') => void | Promise<void>,
    held?: ReadonlySet<string>,
    areReplaced?: boolean,
  ): Promise<void>
  /**
   * Makes the targets equal to the stack, and leaves every other difference as it is. It may be called again after an
   * interruption at any point. `edge` is called before and after each round with its steps.
   */
  repair(
    stack: Stack,
    targets: readonly RepairTarget[],
    signal: AbortSignal,
    edge?: (side: 'before' | 'after', steps: readonly Step[]) => void | Promise<void>,
  ): Promise<void>
  /**
   * Removes what exists of a stack, its data included, and empty volumes that the host created under its names. An
   * absent object is not an error.
   * @throws EngineError HOST_UNREACHABLE at the end, with `missedHosts`, if hosts did not respond, on which parts of the stack may remain
   */
  remove(stackId: string, signal: AbortSignal, edge?: (side: 'before' | 'after') => void | Promise<void>): Promise<void>
  /**
   * Removes services of a stack with volumes that only they use, and detaches containers of other stacks from its networks. An absent
   * object is not an error.
   * @param edge called before the containers and before the volumes are removed
   * @returns the hosts that did not respond, on which some may remain
   */
  removeServices(
    stackId: string,
    parts: RemovedParts,
    signal: AbortSignal,
    edge?: () => Promise<void>,
  ): Promise<readonly string[]>
  /** Runs a program in the running container of a service. @throws EngineError NOT_FOUND if there is none */
  exec(stackId: string, service: string, command: readonly string[], options: ExecOptions): Promise<ExecResult>
  /**
   * Yields a program's standard output as it arrives.
   * @throws EngineError NOT_FOUND if no container is running, ENGINE_FAILED at the end if the exit code is not 0
   */
  execStream(
    stackId: string,
    service: string,
    command: readonly string[],
    options: ExecOptions,
  ): AsyncIterable<Uint8Array>
  /** Yields lines that a service wrote, the oldest first. @throws EngineError NOT_FOUND if it has no container */
  logs(stackId: string, service: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine>
  /** Returns the usage of each running service. */
  stats(stackId: string, signal: AbortSignal): Promise<Readonly<Record<string, ContainerStats>>>
  /** Returns the bytes on disk, by volume. */
  volumeBytes(stackId: string, signal: AbortSignal): Promise<Readonly<Record<string, number>>>
  /**
   * Yields events of the installation's objects. It ends or throws with the connection; the caller connects again and
   * reads everything again.
   */
  events(signal: AbortSignal): AsyncIterable<HostEvent>
}

const isolations: Record<EngineName, readonly Isolation[]> = {
  process: ['schema-per-tenant'],
  docker: ['schema-per-tenant', 'database-per-tenant'],
  swarm: ['schema-per-tenant', 'database-per-tenant'],
}

/** The part of a region on which its isolation models depend. */
interface IsolatingRegion {
  engine: EngineName
  docker?: Pick<ContainerSettings, 'clusters' | 'storage'> | undefined
  processes?: ProcessSettings | undefined
}

/** Returns the isolation models that a region supports, the strongest last. */
export function isolationsOf({ engine, docker, processes }: IsolatingRegion): readonly Isolation[] {
  if (processes !== undefined) return [...isolations[engine], 'database-per-tenant']
  // Runtimes on several hosts have no volume in common.
  if (engine === 'swarm' && docker?.storage === undefined) return ['database-per-tenant']
  return docker?.clusters === undefined ? isolations[engine] : [...isolations[engine], 'cluster-per-tenant']
}

/**
 * Returns the isolation models that tenants of a region get by their plans, the strongest last. Services that run as
 * processes have weaker limits than containers, so a tenant only has them on request.
 */
export function planIsolationsOf({ engine, docker }: IsolatingRegion): readonly Isolation[] {
  return isolationsOf({ engine, docker })
}

/**
 * Whether a region can back up tenants with services of their own. That needs Postgres' own programs, and services that are started
 * next to a tenant's volumes.
 */
export function canBackUpServices({ engine }: Pick<IsolatingRegion, 'engine'>): boolean {
  return engine !== 'process'
}
