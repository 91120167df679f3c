// The sender of watches: the change feed keeps one copy of the published entries current, and every watcher receives it.
import type { Route, TenantManifest, WatchLine } from '@tenantry/contract'
import type { Change } from '../platform/change-feed.ts'

export interface Published {
  tenantId: string
  route: Route
  /** Manifest of the home; undefined until the home exists. */
  manifest: TenantManifest | undefined
}

/** Reads the published entries of tenants. */
export interface PublishedSource {
  /** Yields the entries of all tenants, in no order. */
  all(): AsyncIterable<Published>
  /** Returns the entries of those of the tenants that exist. */
  some(tenantIds: ReadonlySet<string>): Promise<Published[]>
}

export type WatchKind = 'route' | 'manifest'

/** Receives lines; returns false if it is too slow and must be disconnected. */
type Watcher = (text: string) => boolean

/** Stores the published entries of all tenants in memory, and sends them, and then each change, to every watch. */
export class WatchHub {
  readonly #source: PublishedSource
  readonly #onError: (error: Error) => void
  readonly #entries = new Map<string, Published>()
  /** Watchers with the tenant to which each is limited; undefined for all tenants. */
  readonly #watchers: Record<WatchKind, Map<Watcher, string | undefined>> = { route: new Map(), manifest: new Map() }
  #stale = new Set<string>()
  #reload = true
  #wasComplete = false
  #refreshing: Promise<void> | undefined

  constructor(source: PublishedSource, onError: (error: Error) => void) {
    this.#source = source
    this.#onError = onError
  }

  /** Handles every event of the change feed. */
  readonly onChange = (change: Change | 'resync'): void => {
    if (change === 'resync') this.#reload = true
    else if (change.kind === 'observed') return
    else this.#stale.add(change.tenantId)
    void this.#refresh()
  }

  /**
   * Sends the whole set and then the changes, until the returned function is called.
   * @param ofTenant tenant to which the watch is limited
   * @throws Error if the set cannot be read
   */
  async watch(kind: WatchKind, watcher: Watcher, ofTenant?: string): Promise<() => void> {
    await this.#refresh()
    // An incomplete set that ends with `synced` would remove all other tenants. A set that was complete once is still valid.
    if (!this.#wasComplete) throw new Error('The published entries are not available.')
    let text = ''
    for (const entry of this.#entries.values()) {
      const value = entry[kind]
      if (value !== undefined && concerns(ofTenant, entry.tenantId)) text += line({ type: 'put', entry: value })
    }
    // No await separates the copy from the subscription, so that no change is missed between them.
    this.#watchers[kind].set(watcher, ofTenant)
    watcher(text + line({ type: 'synced' }))
    return () => this.#watchers[kind].delete(watcher)
  }

  /** Sends a heartbeat to every watch. The caller repeats it every `watchPingSeconds`. */
  ping(): void {
    for (const kind of ['route', 'manifest'] as const) this.#report(kind, undefined, line({ type: 'ping' }))
  }

  /** Refreshes the entries, one call at a time. The next round reads entries that become stale meanwhile. */
  #refresh(): Promise<void> {
    this.#refreshing ??= (async () => {
      // The work must not begin before this assignment: with nothing to do, the reset below would come first.
      await Promise.resolve()
      try {
        while (this.#reload || this.#stale.size > 0) {
          if (this.#reload) await this.#readAll()
          else await this.#readSome()
        }
      } catch (cause) {
        this.#reload = true
        this.#onError(new Error('The published entries could not be read.', { cause }))
      } finally {
        this.#refreshing = undefined
      }
    })()
    return this.#refreshing
  }

  async #readAll(): Promise<void> {
    this.#reload = false
    this.#stale.clear()
    const seen = new Set<string>()
    for await (const entry of this.#source.all()) {
      seen.add(entry.tenantId)
      this.#put(entry)
    }
    for (const tenantId of this.#entries.keys()) if (!seen.has(tenantId)) this.#remove(tenantId)
    this.#wasComplete = true
  }

  async #readSome(): Promise<void> {
    const ids = this.#stale
    this.#stale = new Set()
    const found = await this.#source.some(ids).catch((cause: unknown) => {
      for (const tenantId of ids) this.#stale.add(tenantId)
      throw cause
    })
    for (const entry of found) {
      ids.delete(entry.tenantId)
      this.#put(entry)
    }
    for (const tenantId of ids) this.#remove(tenantId)
  }

  #put(entry: Published): void {
    const before = this.#entries.get(entry.tenantId)
    this.#entries.set(entry.tenantId, entry)
    for (const kind of ['route', 'manifest'] as const) {
      const value = entry[kind]
      if (value !== undefined) this.#report(kind, entry.tenantId, line({ type: 'put', entry: value }))
      else if (before?.[kind] !== undefined)
        this.#report(kind, entry.tenantId, line({ type: 'remove', tenant_id: entry.tenantId }))
    }
  }

  #remove(tenantId: string): void {
    if (!this.#entries.delete(tenantId)) return
    for (const kind of ['route', 'manifest'] as const)
      this.#report(kind, tenantId, line({ type: 'remove', tenant_id: tenantId }))
  }

  /** Sends a line to the watchers of a tenant. @param tenantId tenant of the line; undefined for all */
  #report(kind: WatchKind, tenantId: string | undefined, text: string): void {
    for (const [watcher, ofTenant] of this.#watchers[kind]) {
      if (concerns(ofTenant, tenantId) && !watcher(text)) this.#watchers[kind].delete(watcher)
    }
  }
}

function concerns(ofTenant: string | undefined, tenantId: string | undefined): boolean {
  return ofTenant === undefined || tenantId === undefined || ofTenant === tenantId
}

function line(value: WatchLine<Route | TenantManifest>): string {
  return `${JSON.stringify(value)}\n`
}
