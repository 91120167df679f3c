// Keeps services running as child processes: starts them, restarts what dies with growing delay, stops them in order.
// Each is the leader of a process group of its own, recorded on disk, so that a later run finds what this one left.
import { spawn, type ChildProcess } from 'node:child_process'
import { ConfigurationError, configurationExitCode, pause } from '@tenantry/contract'
import type { Logger } from 'pino'
import { ServiceLog } from './log-stream.ts'
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

interface SupervisorOptions {
  /** Where the records of running services are. */
  runDirectory: string
  identity: Identity | undefined
  log: Logger
  /** Called when a service that ran before does not start again because its configuration is wrong; it stays down. */
  onConfigurationError?: (error: ConfigurationError) => void
  readyMilliseconds?: number
}

const firstDelay = 100
const maxDelay = 10_000
/** A service that ran so long has earned a short delay again. */
const steadyMilliseconds = 30_000
/** A service that has ended is waited for so long to close its output. */
const lastWordsMilliseconds = 1_000

interface Running {
  service: ProcessService
  log: ServiceLog
  /** Undefined when nothing of its latest process is left. */
  child: ChildProcess | undefined
  stopping: AbortController
  /** Ends when the service is stopped for good. */
  loop: Promise<void>
  exited: Promise<void>
  /** Ends when all that its latest process wrote has been read. */
  output: Promise<unknown>
  lastErrorLine: string
}

export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #records: RunRecords
  readonly #running: Running[] = []
  #isStopped = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#records = new RunRecords(options.runDirectory)
  }

  /** Ends whatever services an earlier run left behind. */
  async endOrphans(): Promise<void> {
    await this.#records.endOrphans(this.#options.log)
  }

  /**
   * Starts a service and returns once it answers.
   * @throws ConfigurationError when its configuration is wrong
   * @throws Error when it does not answer in time, or ends before
   */
  async start(service: ProcessService): Promise<void> {
    if (this.#isStopped) throw new Error(`the service ${service.name} is not started: all of them are being stopped`)
    const stopping = new AbortController()
    const log = new ServiceLog(service.name, this.#options.log)
    const running: Running = {
      service,
      log,
      child: undefined,
      stopping,
      loop: Promise.resolve(),
      exited: Promise.resolve(),
      output: Promise.resolve(),
      lastErrorLine: '',
    }
    this.#running.push(running)
    await this.#spawn(running)
    const readyMilliseconds = this.#options.readyMilliseconds ?? 30_000
    const died = running.exited.then(async () => {
      if (stopping.signal.aborted) return
      throw (
        (await configurationErrorOf(running)) ??
        new Error(`the service ${service.name} ended while it was started; its log above says why`)
      )
    })
    const response = untilReady(
      service,
      AbortSignal.any([stopping.signal, AbortSignal.timeout(readyMilliseconds)]),
      readyMilliseconds,
    )
    await Promise.race([died, response])
    running.loop = this.#keep(running)
  }

  /** Stops all services, each in its turn. `hurry` kills what still runs. */
  async stop(expedite: AbortSignal): Promise<void> {
    this.#isStopped = true
    for (const running of this.#running.splice(0).sort((a, b) => a.service.stopOrder - b.service.stopOrder)) {
      running.stopping.abort()
      const { child, service } = running
      if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        await endGroup(child.pid, { signal: service.stopSignal, milliseconds: service.stopMilliseconds, expedite })
      }
      await running.loop
      await this.#records.remove(service.name)
    }
  }

  /** Restarts the service whenever it ends, until it is stopped. Never throws: nobody would start it again. */
  async #keep(running: Running): Promise<void> {
    const { service, stopping } = running
    const { log } = this.#options
    let delay = firstDelay
    for (;;) {
      const begin = performance.now()
      await running.exited
      if (isAborted(stopping.signal)) return
      const wrong = await configurationErrorOf(running)
      if (wrong !== undefined) {
        log.error({ service: service.name }, 'a service is not started again: its configuration is wrong')
        this.#options.onConfigurationError?.(wrong)
        return
      }
      if (performance.now() - begin > steadyMilliseconds) delay = firstDelay
      try {
        log.warn(
          { service: service.name, code: running.child?.exitCode, signal: running.child?.signalCode, delay },
          'a service ended by itself; it is started again',
        )
        await endRest(running)
        await pause(delay, stopping.signal)
        if (isAborted(stopping.signal)) return
        await this.#spawn(running)
      } catch (error) {
        log.error({ service: service.name, err: error }, 'a service could not be started; it is tried again')
      }
      delay = Math.min(delay * 2, maxDelay)
    }
  }

  async #spawn(running: Running): Promise<void> {
    const { service, stopping } = running
    await service.prepare?.()
    const { command, args } = await asIdentity(this.#options.identity, service.needs, service)
    // A stop that came meanwhile has found no process to end.
    if (stopping.signal.aborted) return
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
      child.on('error', () => resolve())
    })
    running.output = Promise.all([
      running.log.follow(child.stdout),
      running.log.follow(child.stderr, (line) => (running.lastErrorLine = line)),
    ])
    if (child.pid === undefined) return
    const identity = await identityOf(child.pid)
    if (identity === undefined) return
    await this.#records.write(service.name, {
      ...identity,
      command: service.command,
      stopSignal: service.stopSignal,
      stopOrder: service.stopOrder,
    })
  }
}

/** The last line of standard error, when it ended because of its configuration: a restart would end the same way. */
async function configurationErrorOf(running: Running): Promise<ConfigurationError | undefined> {
  if (running.child?.exitCode !== configurationExitCode) return undefined
  await Promise.race([running.output, pause(lastWordsMilliseconds)])
  return new ConfigurationError(`${running.service.name}: ${running.lastErrorLine}`)
}

/** What the service had started (executors, backends) must not live on beside the new one. */
async function endRest(running: Running): Promise<void> {
  if (running.child?.pid === undefined) return
  await endGroup(running.child.pid, { signal: 'SIGKILL', milliseconds: 2_000 })
  // Its number may be another process' from now on.
  running.child = undefined
}

async function untilReady(service: ProcessService, signal: AbortSignal, milliseconds: number): Promise<void> {
  for (;;) {
    if (await service.ready(signal).catch(() => false)) return
    if (signal.aborted) throw new Error(`the service ${service.name} did not answer within ${milliseconds / 1000} s`)
    await pause(10, signal)
  }
}

/** Read anew, because it changes while one waits. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
