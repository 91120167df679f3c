// Keeps services running as child processes: starts them, restarts what dies with growing delay, stops them in order.
// Each is the leader of a process group of its own, recorded on disk, so that a later run finds what this one left.
import { spawn, type ChildProcess } from 'node:child_process'
import type { Logger } from 'pino'
import { followLog } from './log-stream.ts'
import { endGroup } from './process-group.ts'
import { identityOf } from './process-identity.ts'
import { RunRecords } from './run-records.ts'
import { asIdentity, type Identity } from './unprivileged.ts'

export interface ProcessService {
  name: string
  command: string
  args: string[]
  cwd: string
  environment: Record<string, string>
  /** Directories it reads and writes; see `asIdentity`. */
  needs: string[]
  /** Resolves to true once the service answers. */
  ready: (signal: AbortSignal) => Promise<boolean>
  stopSignal: 'SIGTERM' | 'SIGINT'
  /** Services of the lowest number are stopped first. */
  stopOrder: number
  /** Time to stop by itself before it is killed. */
  stopMilliseconds: number
  /** Before each start, for what a crash may have left. */
  prepare?: () => Promise<void>
}

export interface SupervisorOptions {
  /** Where the records of running services are. */
  runDirectory: string
  identity: Identity | undefined
  log: Logger
  readyMilliseconds?: number
}

const firstDelay = 100
const longestDelay = 10_000
/** A service that ran so long has earned a short delay again. */
const steadyMilliseconds = 30_000

interface Running {
  service: ProcessService
  child: ChildProcess | undefined
  stopping: AbortController
  /** Ends when the service is stopped for good. */
  loop: Promise<void>
  exited: Promise<void>
}

export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #records: RunRecords
  readonly #running: Running[] = []

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#records = new RunRecords(options.runDirectory)
  }

  /** Ends whatever services an earlier run left behind. */
  async endOrphans(): Promise<void> {
    await this.#records.endOrphans(this.#options.log)
  }

  /** Starts a service and returns once it answers. @throws Error when it does not in time, or ends before */
  async start(service: ProcessService): Promise<void> {
    const stopping = new AbortController()
    const running: Running = { service, child: undefined, stopping, loop: Promise.resolve(), exited: Promise.resolve() }
    await this.#spawn(running)
    this.#running.push(running)
    const readyMilliseconds = this.#options.readyMilliseconds ?? 30_000
    const died = running.exited.then(() => {
      if (!stopping.signal.aborted) throw new Error(`the service ${service.name} ended while it was started; its log above says why`)
    })
    const answered = untilReady(service, AbortSignal.any([stopping.signal, AbortSignal.timeout(readyMilliseconds)]), readyMilliseconds)
    await Promise.race([died, answered])
    running.loop = this.#keep(running)
    // Nobody waits for it before the stop.
    running.loop.catch(() => undefined)
  }

  /** Stops all services, each in its turn. `hurry` kills what still runs. */
  async stop(hurry: AbortSignal): Promise<void> {
    for (const running of this.#running.splice(0).sort((a, b) => a.service.stopOrder - b.service.stopOrder)) {
      running.stopping.abort()
      const { child, service } = running
      if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        await endGroup(child.pid, { signal: service.stopSignal, milliseconds: service.stopMilliseconds, hurry })
      }
      await running.loop
      await this.#records.remove(service.name)
    }
  }

  /** Restarts the service whenever it ends, until it is stopped. */
  async #keep(running: Running): Promise<void> {
    const { service, stopping } = running
    const { log } = this.#options
    let delay = firstDelay
    for (;;) {
      const begin = performance.now()
      await running.exited
      if (stopping.signal.aborted) return
      if (performance.now() - begin > steadyMilliseconds) delay = firstDelay
      log.warn({ service: service.name, code: running.child?.exitCode, signal: running.child?.signalCode, delay }, 'a service ended by itself; it is started again')
      // What it had started (executors, backends) must not live on beside the new one.
      if (running.child?.pid !== undefined) await endGroup(running.child.pid, { signal: 'SIGKILL', milliseconds: 2_000 })
      await pause(delay, stopping.signal)
      if (isStopped(stopping.signal)) return
      delay = Math.min(delay * 2, longestDelay)
      await this.#spawn(running).catch((error: unknown) => {
        log.error({ service: service.name, err: error }, 'a service could not be started')
      })
    }
  }

  async #spawn(running: Running): Promise<void> {
    const { service } = running
    await service.prepare?.()
    const { command, args } = await asIdentity(this.#options.identity, service.needs, service)
    const child = spawn(command, args, {
      cwd: service.cwd,
      env: service.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: the terminal's ^C is the supervisor's to pass on.
      detached: true,
    })
    running.child = child
    running.exited = new Promise((resolve) => {
      child.once('exit', () => resolve())
      child.once('error', () => resolve())
    })
    followLog(service.name, child.stdout, this.#options.log)
    followLog(service.name, child.stderr, this.#options.log)
    if (child.pid === undefined) return
    const identity = await identityOf(child.pid)
    if (identity === undefined) return
    await this.#records.write(service.name, { ...identity, command: service.command, stopSignal: service.stopSignal, stopOrder: service.stopOrder })
  }
}

async function untilReady(service: ProcessService, signal: AbortSignal, milliseconds: number): Promise<void> {
  for (;;) {
    if (await service.ready(signal).catch(() => false)) return
    if (signal.aborted) throw new Error(`the service ${service.name} did not answer within ${milliseconds / 1000} s`)
    await pause(10, signal)
  }
}

/** Read anew, because it changes while one waits. */
function isStopped(signal: AbortSignal): boolean {
  return signal.aborted
}

function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    }, { once: true })
  })
}
