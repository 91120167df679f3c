// Which tenants have functions that something else than a request starts: found out gently at the start and where tenants
// or functions change, and forgotten when there is nothing to look for. The others cost nothing.
import { randomUUID } from 'node:crypto'
import { pause } from '@tenantry/contract'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { DispatchDeps } from './dispatch.ts'
import { TenantTriggers } from './tenant-triggers.ts'

interface DispatcherOptions extends Omit<DispatchDeps, 'holder'> {
  tenants: () => Iterable<Tenant>
  /** Other runtimes serve the same tenants, and may change their functions: all are looked at again after so many milliseconds. */
  recheckMilliseconds: number | undefined
}

/** Between two tenants that are read without a request. */
const gentleMilliseconds = 20
/** A stop waits so long for functions that run. */
const drainMilliseconds = 10_000

interface Watched {
  triggers: TenantTriggers
  over: Promise<void>
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #deps: DispatchDeps
  readonly #watched = new Map<string, Watched>()
  /** Tenants of which nothing is known yet. */
  readonly #unread = new Set<string>()
  #isRunning = false
  #wake: () => void = () => undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#deps = { ...options, holder: randomUUID() }
  }

  /** Something of the tenant's may have been written. */
  notify(tenantId: string): void {
    this.#watched.get(tenantId)?.triggers.notify()
  }

  /** Functions of the tenant were changed here, or their tables. */
  changed(tenantId: string): void {
    if (!this.#isRunning) return
    const watched = this.#watched.get(tenantId)
    if (watched === undefined) this.#watch(tenantId)
    else watched.triggers.changed()
  }

  /** A tenant is new, has changed, or is gone. */
  evict(tenantId: string): void {
    this.#unread.add(tenantId)
    this.#wake()
  }

  /** Until aborted, and what runs has ended or had its time. */
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
        await pause(gentleMilliseconds, signal)
        continue
      }
      const left = recheckMilliseconds === undefined ? undefined : checked + recheckMilliseconds - elapsed()
      if (left !== undefined && left <= 0) {
        checked = elapsed()
        for (const { id } of this.#options.tenants()) this.#unread.add(id)
      } else await this.#pause(signal, left)
    }
    this.#isRunning = false
    for (const { triggers } of this.#watched.values()) triggers.stop()
    const drained = new AbortController()
    const ended = Promise.all([...this.#watched.values()].map(({ over }) => over)).then(() => drained.abort())
    await Promise.race([ended, pause(drainMilliseconds, drained.signal)])
  }

  #watch(tenantId: string): void {
    const triggers = new TenantTriggers(tenantId, this.#deps)
    const over = triggers.run().then(() => {
      this.#watched.delete(tenantId)
      // It was told of a change as it ended.
      if (triggers.isStale) this.changed(tenantId)
    })
    this.#watched.set(tenantId, { triggers, over })
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
