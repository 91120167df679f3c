// What an engine is: the part that makes a stack exist, and tells what does exist.
import type { Stack, Isolation } from '../stacks/index.ts'
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

export type EngineName = 'process' | 'docker' | 'swarm'

/** All calls throw `EngineError`. */
export interface Engine {
  readonly name: EngineName
  /** Value of the label of everything that it makes. */
  readonly installation: string
  /** Reads what the engine's host is and how much it has. */
  info(signal: AbortSignal): Promise<HostInfo>
  /** The image that a reference means now. @throws EngineError IMAGE_MISSING */
  image(reference: string, signal: AbortSignal): Promise<HostImage>
  /** What exists of a stack, found by its labels; without an id: of all stacks. */
  observe(stackId: string | undefined, signal: AbortSignal): Promise<ObservedHost>
  /**
   * Makes what exists equal to the stack; may be called again at any point of an earlier, interrupted call. `edge` is
   * called at every boundary between its steps.
   */
  converge(stack: Stack, signal: AbortSignal, edge?: (side: 'before' | 'after') => void | Promise<void>): Promise<void>
  /** Removes what exists of a stack, its data too, and empty volumes that the host made in its name; what is absent is no error. */
  remove(stackId: string, signal: AbortSignal, edge?: (side: 'before' | 'after') => void | Promise<void>): Promise<void>
  /** In the running container of a service. @throws EngineError NOT_FOUND when there is none */
  exec(stackId: string, service: string, command: readonly string[], options: ExecOptions): Promise<ExecResult>
  /**
   * Standard output as it comes. @throws EngineError NOT_FOUND when no container runs, ENGINE_FAILED at the end when
   * the exit code is not 0
   */
  execStream(
    stackId: string,
    service: string,
    command: readonly string[],
    options: ExecOptions,
  ): AsyncIterable<Uint8Array>
  /** Lines that a service wrote, the oldest first. @throws EngineError NOT_FOUND when it has no container */
  logs(stackId: string, service: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine>
  /** Of each service that runs. */
  stats(stackId: string, signal: AbortSignal): Promise<Readonly<Record<string, ContainerStats>>>
  /** Bytes on disk, by volume. */
  volumeBytes(stackId: string, signal: AbortSignal): Promise<Readonly<Record<string, number>>>
  /**
   * What happens to the installation's objects. It ends or throws when the connection does; the caller connects again
   * and reads everything anew.
   */
  events(signal: AbortSignal): AsyncIterable<HostEvent>
}

const isolations: Record<EngineName, readonly Isolation[]> = {
  process: ['schema-per-tenant'],
  docker: ['schema-per-tenant', 'database-per-tenant'],
  swarm: ['schema-per-tenant'],
}

/** Isolation models that an engine can do, the strongest last. */
export function isolationsOf(engine: EngineName): readonly Isolation[] {
  return isolations[engine]
}
