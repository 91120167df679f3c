// What one tenant's functions have to be started for: a loop that looks when something may have been written, when a
// planned time comes, and now and then.
import type { Tenant } from '../../tenancy/tenant.ts'
import { Deliverer } from './deliverer.ts'
import { dropOrphans } from './delivery-store.ts'
import type { DispatchDeps } from './dispatch.ts'
import { Jobs } from './jobs.ts'
import { PlannedTimes } from './planned-times.ts'
import { installTriggers } from './table-triggers.ts'
import { readTriggers } from './triggered-function.ts'

/** The longest pause: clocks are set, and machines sleep. */
const maxPause = 10_000
/** Of a tenant whose database does not answer. */
const maxRestLength = 60_000
/** Between two looks, however much is written. */
const shortestPause = 10

export class TenantTriggers {
  readonly #tenantId: string
  readonly #deps: DispatchDeps
  readonly #jobs: Jobs
  readonly #plannedTimes: PlannedTimes
  readonly #deliverer: Deliverer
  #isStale = true
  #wasNotified = false
  #wake: () => void = () => undefined

  constructor(tenantId: string, deps: DispatchDeps) {
    const { pace, onError } = deps
    const changed = () => this.changed()
    this.#tenantId = tenantId
    this.#deps = deps
    this.#jobs = new Jobs({
      rest: pace.again,
      onEnd: () => this.notify(),
      onError: (error) => onError(new Error(`${tenantId}: ${error.message}`, { cause: error.cause })),
    })
    this.#plannedTimes = new PlannedTimes(deps, this.#jobs, changed)
    this.#deliverer = new Deliverer(deps, this.#jobs, changed)
  }

  /** What is known of the tenant's triggers may be wrong. */
  get isStale(): boolean {
    return this.#isStale
  }

  /** Something may have been written. */
  notify(): void {
    this.#wasNotified = true
    this.#wake()
  }

  /** Functions or their triggers may have changed. */
  changed(): void {
    this.#isStale = true
    this.notify()
  }

  /** Nothing is begun any more; `run` returns once what runs has ended. */
  stop(): void {
    this.#jobs.stop()
    this.#wake()
  }

  /** Until it is stopped, or there is nothing to look for. Never throws. */
  async run(): Promise<void> {
    const { pace, onError, tenantOf } = this.#deps
    let failures = 0
    while (!this.#jobs.isStopped) {
      this.#wasNotified = false
      let pause: number | undefined
      try {
        pause = await this.#poll()
        failures = 0
      } catch (cause) {
        onError(new Error(`${this.#tenantId}: triggers of functions could not be looked after`, { cause }))
        await this.#pause(Math.min(pace.again * 2 ** failures++, maxRestLength))
        continue
      }
      if (pause === undefined && this.#jobs.isIdle && !this.#isStale) break
      await this.#pause(this.#isQuiet() ? Math.min(pause ?? maxPause, maxPause) : shortestPause)
    }
    await this.#jobs.ended()
    const tenant = tenantOf(this.#tenantId)
    // A lease that can't be given back ends by itself.
    if (tenant !== undefined) await this.#deliverer.leave(tenant).catch(() => undefined)
  }

  /** @returns milliseconds until the next look; undefined: there is nothing to look for */
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
      const { scheduled, told: reported, isSettled } = await readTriggers(tenant, this.#deps.now())
      this.#plannedTimes.watch(scheduled)
      this.#deliverer.watch(reported)
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

  /** Until the time is over or somebody pokes, but for the shortest. */
  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(shortestPause, milliseconds))
      this.#wake = () => {
        if (milliseconds <= shortestPause && !this.#jobs.isStopped) return
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
