// Supervises services as child processes: it starts them, restarts those that end with a growing delay, and stops them
// in order. Each leads its own process group, which is recorded on disk, so that a later run finds the processes that
// this one left.
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
  /** Directories that it reads and writes; see `asIdentity`. */
  needs: string[]
  /** Resolves to whether the service responds. The time limit of a start does not include the time of `recovering`. */
  ready: (signal: AbortSignal) => Promise<boolean | 'recovering'>
  stopSignal: 'SIGTERM' | 'SIGINT'
  /** Position in the stop order; the lowest is stopped first. */
  stopOrder: number
  /** Time limit in milliseconds after the stop signal, after which it is killed. */
  stopMilliseconds: number
  /** Called before each start, to repair the effects of a crash. */
  prepare?: () => Promise<void>
}

interface SupervisorOptions {
  /** Directory of the records of running services. */
  runDirectory: string
  identity: Identity | undefined
  log: Logger
  /** Called when a service that ran before cannot restart because of its configuration. It stays stopped. */
  onConfigurationError?: (error: ConfigurationError) => void
  readyMilliseconds?: number
}

/** Delay before a second restart. The first one has none, because others wait for the service. */
const minDelayMilliseconds = 100
const maxDelayMilliseconds = 10_000
/** Run time after which a restart counts as the first one again. */
const steadyMilliseconds = 5_000
/** Time limit for the output of a service that has ended. */
const outputMilliseconds = 1_000
/** Times after which a stop and a recovery are reported. */
const slowStopMilliseconds = 10_000
const slowRecoveryMilliseconds = 5_000
/** Pause between two requests of a starting service. The pauses of one that recovers grow. */
const readyPauseMilliseconds = 10
const recoveryPauseShare = 0.1

interface Running {
  service: ProcessService
  log: ServiceLog
  /** Latest process; undefined if none of its group remains. */
  child: ChildProcess | undefined
  stopping: AbortController
  /** Resolves when the service has stopped. */
  loop: Promise<void>
  exited: Promise<void>
  /** The stop, once it is requested. */
  stopped: Promise<void> | undefined
  /** Resolves when all output of the latest process has been read. */
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

  /** Ends services that an earlier run left. */
  async endOrphans(): Promise<void> {
    await this.#records.endOrphans(this.#options.log)
  }

  /**
   * Starts a service and returns once it responds.
   * @throws ConfigurationError if its configuration is wrong
   * @throws Error if it does not respond in time, or ends before
   */
  async start(service: ProcessService): Promise<void> {
    if (this.#isStopped)
      throw new Error(`The service ${service.name} cannot start while all services are being stopped.`)
    const stopping = new AbortController()
    const log = new ServiceLog(service.name, this.#options.log)
    const running: Running = {
      service,
      log,
      child: undefined,
      stopping,
      loop: Promise.resolve(),
      exited: Promise.resolve(),
      stopped: undefined,
      output: Promise.resolve(),
      lastErrorLine: '',
    }
    this.#running.push(running)
    await this.#spawn(running)
    const readyMilliseconds = this.#options.readyMilliseconds ?? 60_000
    const died = running.exited.then(async () => {
      if (stopping.signal.aborted) return
      throw (
        (await configurationErrorOf(running)) ??
        new Error(`The service ${service.name} ended during its start. Its log above contains the reason.`)
      )
    })
    await Promise.race([died, this.#untilReady(service, stopping.signal, readyMilliseconds)])
    running.loop = this.#supervise(running)
  }

  /** @throws Error when the service has not responded in time, apart from the time in which it recovered */
  async #untilReady(service: ProcessService, stopping: AbortSignal, milliseconds: number): Promise<void> {
    const begin = performance.now()
    let recovering = 0
    for (;;) {
      const from = performance.now()
      const state = await service.ready(stopping).catch(() => false)
      if (state === true) return
      if (isAborted(stopping) || performance.now() - begin - recovering > milliseconds)
        throw new Error(`The service ${service.name} did not respond within ${milliseconds / 1000} s.`)
      await pause(Math.max(readyPauseMilliseconds, recovering * recoveryPauseShare), stopping)
      if (state !== 'recovering') continue
      const before = recovering
      recovering += performance.now() - from
      if (before <= slowRecoveryMilliseconds && recovering > slowRecoveryMilliseconds)
        this.#options.log.info({ service: service.name }, 'A service repeats what it had not written when it ended.')
    }
  }

  /**
   * Stops all services in their order, or those up to a position in it. `expedite` kills remaining processes. Afterwards,
   * no service starts.
   */
  async stop(expedite: AbortSignal, last = Number.MAX_SAFE_INTEGER): Promise<void> {
    this.#isStopped = true
    const services = this.#running.filter(({ service }) => service.stopOrder <= last)
    this.#running.splice(0, Infinity, ...this.#running.filter((running) => !services.includes(running)))
    const orders = new Set(services.map(({ service }) => service.stopOrder).sort((a, b) => a - b))
    for (const order of orders) {
      const together = services.filter(({ service }) => service.stopOrder === order)
      await Promise.all(together.map((running) => this.#stop(running, expedite)))
    }
  }

  /** Stops one service for good, if it was started. `expedite` kills it. */
  async end(name: string, expedite: AbortSignal): Promise<void> {
    const running = this.#running.find(({ service }) => service.name === name)
    if (running === undefined) return
    await this.#stop(running, expedite)
    const at = this.#running.indexOf(running)
    if (at >= 0) this.#running.splice(at, 1)
  }

  /** Stops a service, once: a second signal would end it before it has sent its last data. */
  #stop(running: Running, expedite: AbortSignal): Promise<void> {
    return (running.stopped ??= this.#stopNow(running, expedite))
  }

  async #stopNow(running: Running, expedite: AbortSignal): Promise<void> {
    running.stopping.abort()
    const { child, service } = running
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const slow = setTimeout(
        () =>
          this.#options.log.warn({ service: service.name }, 'A service has not ended yet. A second signal kills it.'),
        slowStopMilliseconds,
      )
      await endGroup(child.pid, {
        signal: service.stopSignal,
        milliseconds: service.stopMilliseconds,
        expedite,
      }).finally(() => clearTimeout(slow))
    }
    await running.loop
    await this.#records.remove(service.name)
  }

  /** Restarts the service whenever it ends, until it is stopped. Never throws, because nothing else would restart it. */
  async #supervise(running: Running): Promise<void> {
    const { service, stopping } = running
    const { log } = this.#options
    let delay = 0
    for (;;) {
      const begin = performance.now()
      await running.exited
      if (isAborted(stopping.signal)) return
      const configurationError = await configurationErrorOf(running)
      if (configurationError !== undefined) {
        log.error({ service: service.name }, 'A service is not restarted, because its configuration is wrong.')
        this.#options.onConfigurationError?.(configurationError)
        return
      }
      if (performance.now() - begin > steadyMilliseconds) delay = 0
      try {
        log.warn(
          { service: service.name, code: running.child?.exitCode, signal: running.child?.signalCode, delay },
          'A service ended by itself and is restarted.',
        )
        await endRemaining(running)
        await pause(delay, stopping.signal)
        if (isAborted(stopping.signal)) return
        await this.#spawn(running)
      } catch (error) {
        log.error({ service: service.name, err: error }, 'A service could not be started. The start is retried.')
      }
      delay = Math.min(Math.max(delay * 2, minDelayMilliseconds), maxDelayMilliseconds)
    }
  }

  async #spawn(running: Running): Promise<void> {
    const { service, stopping } = running
    await service.prepare?.()
    const { command, args } = await asIdentity(this.#options.identity, service.needs, service)
    // A stop during these steps found no process to end.
    if (stopping.signal.aborted) return
    const child = spawn(command, args, {
      cwd: service.cwd,
      env: service.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      // Its own group, because the supervisor passes the terminal's ^C on.
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

/**
 * Returns the last line of standard error if the configuration ended the service. A restart would end in the same way.
 */
async function configurationErrorOf(running: Running): Promise<ConfigurationError | undefined> {
  if (running.child?.exitCode !== configurationExitCode) return undefined
  await Promise.race([running.output, pause(outputMilliseconds)])
  return new ConfigurationError(`${running.service.name}: ${running.lastErrorLine}`)
}

/** Ends processes of the service (executors, backends), which must not run alongside the new ones. */
async function endRemaining(running: Running): Promise<void> {
  if (running.child?.pid === undefined) return
  await endGroup(running.child.pid, { signal: 'SIGKILL', milliseconds: 2_000 })
  // Another process may get this PID from now on.
  running.child = undefined
}

/** Reads the signal again, because it can change during a wait. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
