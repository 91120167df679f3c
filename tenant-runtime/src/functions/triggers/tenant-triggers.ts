// The loop that starts one tenant's functions by their triggers. It polls after writes, at planned times and at intervals.
import type { Tenant } from '../../tenancy/tenant.ts'
import { Deliverer } from './deliverer.ts'
import { dropOrphans } from './delivery-store.ts'
import type { DispatchDeps } from './dispatch.ts'
import { Jobs } from './jobs.ts'
import { PlannedTimes } from './planned-times.ts'
import { installTriggers } from './table-triggers.ts'
import { readTriggers } from './triggered-function.ts'

/** Longest pause between two polls, because clocks can be set and machines can sleep. */
const maxPauseMilliseconds = 10_000
/** Longest pause after failures of the database. */
const maxRetryPauseMilliseconds = 60_000
/** Shortest pause between two polls. */
const minPauseMilliseconds = 10

export class TenantTriggers {
  readonly #tenantId: string
  readonly #deps: DispatchDeps
  readonly #jobs: Jobs
  readonly #plannedTimes: PlannedTimes
  readonly #deliverer: Deliverer
  readonly #firstPoll = Promise.withResolvers<undefined>()
  #isStale = true
  #wasNotified = false
  #wake: () => void = () => undefined

  constructor(tenantId: string, deps: DispatchDeps) {
    const { pace, onError } = deps
    const changed = () => this.changed()
    this.#tenantId = tenantId
    this.#deps = deps
    this.#jobs = new Jobs({
      pauseAfterFailure: pace.retry,
      onEnd: () => this.notify(),
      onError: (error) => onError(new Error(`${tenantId}: ${error.message}`, { cause: error.cause })),
    })
    this.#plannedTimes = new PlannedTimes(deps, this.#jobs, changed)
    this.#deliverer = new Deliverer(deps, this.#jobs, changed)
  }

  /** Whether the tenant's triggers must be read again. */
  get isStale(): boolean {
    return this.#isStale
  }

  /** Resolves when the triggers have been read for the first time, or could not be read. */
  get hasPolled(): Promise<void> {
    return this.#firstPoll.promise
  }

  /** Starts the next poll, because the tenant's data may have changed. */
  notify(): void {
    this.#wasNotified = true
    this.#wake()
  }

  /** Reads the triggers again, because functions may have changed. */
  changed(): void {
    this.#isStale = true
    this.notify()
  }

  /** Stops the loop. `run` returns after the running functions have ended. */
  stop(): void {
    this.#jobs.stop()
    this.#wake()
  }

  /** Runs until it is stopped or no function has a trigger. Never throws. */
  async run(): Promise<void> {
    const { pace, onError, tenantOf } = this.#deps
    let failures = 0
    while (!this.#jobs.isStopped) {
      this.#wasNotified = false
      let pause: number | undefined
      try {
        pause = await this.#poll().finally(() => this.#firstPoll.resolve(undefined))
        failures = 0
      } catch (cause) {
        onError(new Error(`${this.#tenantId}: Triggers of functions could not be processed.`, { cause }))
        await this.#pause(Math.min(pace.retry * 2 ** failures++, maxRetryPauseMilliseconds))
        continue
      }
      if (pause === undefined && this.#jobs.isIdle && !this.#isStale) break
      await this.#pause(
        this.#isQuiet() ? Math.min(pause ?? maxPauseMilliseconds, maxPauseMilliseconds) : minPauseMilliseconds,
      )
    }
    await this.#jobs.ended()
    const tenant = tenantOf(this.#tenantId)
    // A lease that can't be released expires.
    if (tenant !== undefined) await this.#deliverer.release(tenant).catch(() => undefined)
  }

  /** Starts what is due. @returns milliseconds until the next poll; undefined if no function has a trigger */
  async #poll(): Promise<number | undefined> {
    const tenant = this.#deps.tenantOf(this.#tenantId)
    if (tenant === undefined) {
      this.#isStale = false
      return undefined
    }
    if (this.#isStale) await this.#read(tenant)
    const pauses = [this.#plannedTimes.poll(tenant), await this.#deliverer.poll(tenant)].filter(
      (pause) => pause !== undefined,
    )
    return pauses.length === 0 ? undefined : Math.min(...pauses)
  }

  async #read(tenant: Tenant): Promise<void> {
    this.#isStale = false
    try {
      const { scheduled, listening, isSettled } = await readTriggers(tenant, this.#deps.now())
      this.#plannedTimes.watch(scheduled)
      this.#deliverer.watch(listening)
      if (isSettled) return
      await installTriggers(tenant)
      await dropOrphans(tenant)
    } catch (error) {
      this.#isStale = true
      throw error
    }
  }

  #isQuiet(): boolean {
    return !this.#wasNotified
  }

  /** Waits for a time, or until a notification. Notifications do not end the shortest pause. */
  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(minPauseMilliseconds, milliseconds))
      this.#wake = () => {
        if (milliseconds <= minPauseMilliseconds && !this.#jobs.isStopped) return
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
