// One program in the place of a container: starts its process, starts it again when it ends by itself, and checks its health.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerState, ObservedContainer } from '../../../control-plane/src/engines/index.ts'
import { endGroup, signalProcess } from '../process/process-group.ts'
import { identityOf } from '../process/process-identity.ts'
import type { RunRecords } from '../process/run-records.ts'
import { asIdentity, type Command, type Identity } from '../process/unprivileged.ts'
import type { ContainerLog } from './container-log.ts'
import type { ContainerRecord } from './container-record.ts'
import { clientResources, limited, plainMemory, setLimits, type Limits, type MemoryLimit } from './limits.ts'
import { killRemaining } from './process-tree.ts'
import { programCommand } from './programs.ts'

const minDelayMilliseconds = 100
const maxDelayMilliseconds = 10_000
/** Run time after which a restart counts as the first one again. */
const steadyMilliseconds = 10_000
/** Interval of the checks until the first one succeeds. */
const firstCheckMilliseconds = 1_000

/** The command, the directories and the user with which a program runs on this machine. */
export interface Launch {
  command: Command
  environment: Record<string, string>
  /** The working directory. */
  directory: string
  /** Directories in which only this program's processes work. */
  ownDirectories: readonly string[]
  /** Directories that the program needs to reach. */
  needs: string[]
  identity: Identity | undefined
  hasOwnUser: boolean
  stopSignal: 'SIGINT' | 'SIGTERM'
  stopOrder: number
  memory: MemoryLimit
}

interface ContainerProcessOptions {
  record: ContainerRecord
  /** Returns how the program is run now, which depends on the record. */
  launch: () => Launch
  log: ContainerLog
  runs: RunRecords
  /** Called when the process has started or ended, or its health has changed. */
  onEvent: (what: string) => void
  /** Stores the record. */
  save: () => Promise<void>
}

export class ContainerProcess {
  readonly record: ContainerRecord
  readonly log: ContainerLog
  readonly #presentLaunch: () => Launch
  readonly #runs: RunRecords
  readonly #onEvent: (what: string) => void
  readonly #save: () => Promise<void>
  #launch: Launch
  #child: ChildProcess | undefined
  #loop: Promise<void> = Promise.resolve()
  #stopping = new AbortController()
  #health: ObservedContainer['health'] = 'none'
  #restarts = 0

  constructor({ record, launch, log, runs, onEvent, save }: ContainerProcessOptions) {
    this.record = record
    this.#presentLaunch = launch
    this.#launch = launch()
    this.log = log
    this.#runs = runs
    this.#onEvent = onEvent
    this.#save = save
    // Nothing runs until `start`.
    this.#stopping.abort()
  }

  /** Returns how the latest process was started; before the first one, how it would be. */
  get launch(): Launch {
    return this.#launch
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get state(): ContainerState {
    if (!this.#stopping.signal.aborted) return this.#child === undefined ? 'restarting' : 'running'
    return this.record.startedAt === undefined ? 'created' : 'exited'
  }

  get health(): ObservedContainer['health'] {
    return this.state === 'running' ? this.#health : 'none'
  }

  get restarts(): number {
    return this.#restarts
  }

  /** Starts the process. One that runs, or is about to be started again, is left alone. */
  async start(): Promise<void> {
    if (!this.#stopping.signal.aborted) return
    await this.#loop
    this.record.isStarted = true
    this.record.startedAt = new Date().toISOString()
    this.#stopping = new AbortController()
    try {
      await this.#save()
      this.#restarts = 0
      await this.#spawn()
    } catch (error) {
      if (this.#child === undefined) {
        this.#stopping.abort()
        throw error
      }
      this.log.note(`The program has started, but not all records were written: ${messageOf(error)}`)
    }
    this.#loop = this.#supervise(this.#stopping.signal)
  }

  /** Stops the process, which is killed after `seconds`. @param isHalted false when it starts again with the installation */
  async stop(seconds: number, expedite?: AbortSignal, isHalted = true): Promise<void> {
    this.#stopping.abort()
    if (isHalted && this.record.isStarted) {
      this.record.isStarted = false
      await this.#save()
    }
    const pid = this.#child?.pid
    if (pid !== undefined) {
      await endGroup(pid, {
        signal: seconds === 0 ? 'SIGKILL' : this.launch.stopSignal,
        milliseconds: seconds * 1000,
        ...(expedite === undefined ? {} : { expedite }),
      })
    }
    await this.#loop
    await killRemaining(this.launch)
    await this.#runs.remove(this.record.spec.name)
  }

  /** Applies the record's limits to the running process. */
  async limit(): Promise<void> {
    const pid = this.#child?.pid
    if (pid !== undefined) await setLimits(pid, this.#limits())
  }

  /** Starts another program in the environment of this one. */
  async spawnInside(command: Command): Promise<ChildProcess> {
    const { identity, needs, directory, hasOwnUser } = this.launch
    const inside = await asIdentity(
      identity,
      needs,
      limited({ resources: clientResources, memory: plainMemory, hasOwnUser }, command),
    )
    const child = spawn(inside.command, inside.args, {
      cwd: directory,
      env: this.launch.environment,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    })
    // A child without a process ID reports the failure to its caller.
    child.on('error', () => undefined)
    return child
  }

  #limits(): Limits {
    const { memory, hasOwnUser } = this.launch
    return { resources: this.record.spec.resources, memory, hasOwnUser }
  }

  /** Adds the reason to the log why the process could not be started. */
  noteFailure(error: unknown): void {
    this.log.note(`The program could not be started: ${messageOf(error)}`)
  }

  /** Starts the process again whenever it ends, until it is stopped. */
  async #supervise(stopping: AbortSignal): Promise<void> {
    let delay = minDelayMilliseconds
    for (;;) {
      const begin = performance.now()
      const child = this.#child
      if (child !== undefined) await this.#end(child, stopping)
      this.#child = undefined
      if (stopping.aborted) return
      this.#onEvent('container die')
      if (performance.now() - begin > steadyMilliseconds) delay = minDelayMilliseconds
      await sleep(delay, undefined, { signal: stopping }).catch(() => undefined)
      delay = Math.min(delay * 2, maxDelayMilliseconds)
      if (isAborted(stopping)) return
      this.#restarts++
      try {
        await killRemaining(this.launch)
        await this.#spawn()
      } catch (error) {
        this.noteFailure(error)
      }
    }
  }

  /** Waits for the end of a process and of its group, and checks its health meanwhile. */
  async #end(child: ChildProcess, stopping: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const checks = this.#check(AbortSignal.any([ended.signal, stopping]))
    await exitOf(child)
    ended.abort()
    await checks
    this.record.exitCode = child.exitCode ?? (child.signalCode === 'SIGKILL' ? 137 : 143)
    if (child.pid !== undefined)
      await endGroup(child.pid, { signal: 'SIGKILL', milliseconds: 2_000 }).catch(() => undefined)
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { command, intervalSeconds, timeoutSeconds, retries, startSeconds } = this.record.spec.health
    const begin = performance.now()
    let failures = 0
    this.#health = 'starting'
    for (;;) {
      await sleep(this.#health === 'starting' ? firstCheckMilliseconds : intervalSeconds * 1000, undefined, {
        signal,
      }).catch(() => undefined)
      if (signal.aborted) return
      const isHealthy = await this.#isHealthy(command, timeoutSeconds * 1000, signal)
      if (isAborted(signal)) return
      const before: ObservedContainer['health'] = this.#health
      if (isHealthy) {
        failures = 0
        this.#health = 'healthy'
      } else if (performance.now() - begin > startSeconds * 1000 && ++failures >= retries) this.#health = 'unhealthy'
      if (before !== this.#health && this.health === 'unhealthy') this.#onEvent('container health_status: unhealthy')
    }
  }

  async #isHealthy(command: readonly string[], milliseconds: number, signal: AbortSignal): Promise<boolean> {
    const child = await this.spawnInside(programCommand(command)).catch(() => undefined)
    if (child?.pid === undefined) return false
    const { pid } = child
    const limit = AbortSignal.any([signal, AbortSignal.timeout(milliseconds)])
    const kill = () => signalProcess(-pid, 'SIGKILL')
    limit.addEventListener('abort', kill, { once: true })
    if (limit.aborted) kill()
    for (const stream of [child.stdout, child.stderr]) stream?.resume()
    child.stdin?.on('error', () => undefined).end()
    await exitOf(child)
    // Another group can have the number later.
    limit.removeEventListener('abort', kill)
    return child.exitCode === 0
  }

  async #spawn(): Promise<void> {
    this.#launch = this.#presentLaunch()
    const { identity, needs, directory, environment, command, stopSignal, stopOrder } = this.#launch
    const { name } = this.record.spec
    const started = await asIdentity(identity, needs, limited(this.#limits(), command))
    // A stop during these steps found no process to end.
    if (this.#stopping.signal.aborted) return
    const child = spawn(started.command, started.args, {
      cwd: directory,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    child.on('error', () => undefined)
    this.#child = child
    this.record.startedAt = new Date().toISOString()
    // A child that could not be started may lack its streams.
    if (child.pid === undefined) return
    void this.log.read('stdout', child.stdout)
    void this.log.read('stderr', child.stderr)
    const found = await identityOf(child.pid)
    if (found !== undefined) await this.#runs.write(name, { ...found, command: command.command, stopSignal, stopOrder })
    this.#onEvent('container start')
  }
}

/** Waits until a process has ended. One that could not be started has. */
export async function exitOf(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  await once(child, 'exit').catch(() => undefined)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Reads the signal again, because it can change during a wait. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
