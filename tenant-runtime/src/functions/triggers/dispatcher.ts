// Runs a loop for each tenant that has functions with triggers. It reads the tenants' functions one by one at the start, and
// again after changes. Tenants without such functions cost nothing.
import { randomUUID } from 'node:crypto'
import { pause } from '@tenantry/contract'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { DispatchDeps } from './dispatch.ts'
import { TenantTriggers } from './tenant-triggers.ts'

interface DispatcherOptions extends Omit<DispatchDeps, 'holder'> {
  tenants: () => Iterable<Tenant>
  /** Interval at which all tenants are read again, if other runtimes may change their functions; else undefined. */
  recheckMilliseconds: number | undefined
}

/**
 * Shortest pause between two tenants that are read in the background. It is at least as long as the read, so that a start with
 * thousands of tenants leaves half of the database's work to others.
 */
const backgroundPauseMilliseconds = 20
/** Longest wait for a read, so that a tenant whose database does not respond does not delay the others. */
const maxReadMilliseconds = 1_000
/** Longest time for which a stop waits for running functions. */
const drainMilliseconds = 10_000

interface Watched {
  triggers: TenantTriggers
  ended: Promise<void>
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #deps: DispatchDeps
  readonly #watched = new Map<string, Watched>()
  /** Tenants whose functions are not read yet. */
  readonly #unread = new Set<string>()
  #isRunning = false
  #wake: () => void = () => undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#deps = { ...options, holder: randomUUID() }
  }

  /** Notifies the loop that the tenant's data may have changed. */
  notify(tenantId: string): void {
    this.#watched.get(tenantId)?.triggers.notify()
  }

  /** Notifies the loop that the tenant's functions or their tables have changed. */
  changed(tenantId: string): void {
    if (!this.#isRunning) return
    const watched = this.#watched.get(tenantId)
    if (watched === undefined) this.#watch(tenantId)
    else watched.triggers.changed()
  }

  /** Reads the tenant's functions again, because the tenant was added, changed or deleted. */
  evict(tenantId: string): void {
    this.#unread.add(tenantId)
    this.#wake()
  }

  /** Runs until aborted, and until running functions have ended or the time to wait for them is over. */
  async run(signal: AbortSignal): Promise<void> {
    this.#isRunning = true
    for (const { id } of this.#options.tenants()) this.#unread.add(id)
    const { elapsed } = this.#options
    let checked = elapsed()
    while (!signal.aborted) {
      const [tenantId] = this.#unread
      const { recheckMilliseconds } = this.#options
      if (tenantId !== undefined) {
        this.#unread.delete(tenantId)
        this.changed(tenantId)
        const begin = elapsed()
        await this.#untilRead(tenantId, signal)
        await pause(Math.max(backgroundPauseMilliseconds, elapsed() - begin), signal)
        continue
      }
      const untilRecheck = recheckMilliseconds === undefined ? undefined : checked + recheckMilliseconds - elapsed()
      if (untilRecheck !== undefined && untilRecheck <= 0) {
        checked = elapsed()
        for (const { id } of this.#options.tenants()) this.#unread.add(id)
      } else await this.#pause(signal, untilRecheck)
    }
    this.#isRunning = false
    for (const { triggers } of this.#watched.values()) triggers.stop()
    const drained = new AbortController()
    const allEnded = Promise.all([...this.#watched.values()].map(({ ended }) => ended)).then(() => drained.abort())
    await Promise.race([allEnded, pause(drainMilliseconds, drained.signal)])
  }

  #watch(tenantId: string): void {
    const triggers = new TenantTriggers(tenantId, this.#deps)
    const ended = triggers.run().then(() => {
      this.#watched.delete(tenantId)
      // A change came while the loop ended.
      if (triggers.isStale) this.changed(tenantId)
    })
    this.#watched.set(tenantId, { triggers, ended })
  }

  /** Waits until the tenant's functions have been read, or for the longest wait. */
  async #untilRead(tenantId: string, signal: AbortSignal): Promise<void> {
    const read = this.#watched.get(tenantId)?.triggers.hasPolled
    if (read === undefined) return
    const isRead = new AbortController()
    await Promise.race([read, pause(maxReadMilliseconds, AbortSignal.any([signal, isRead.signal]))])
    isRead.abort()
  }

  #pause(signal: AbortSignal, milliseconds: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = milliseconds === undefined ? undefined : setTimeout(end, milliseconds)
      this.#wake = end
      signal.addEventListener('abort', end)
    })
  }
}
