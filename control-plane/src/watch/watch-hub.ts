// The writing end of the watches: one copy of what is published, kept current by the change feed, told to every watcher.
import type { Route, TenantManifest, WatchLine } from '@tenantry/contract'
import type { Change } from '../platform/change-feed.ts'

export interface Published {
  tenantId: string
  route: Route
  /** Undefined as long as there is no home to serve. */
  manifest: TenantManifest | undefined
}

/** Reads what watches are to be sent of tenants. */
export interface PublishedSource {
  /** Of all tenants, in no order. */
  all(): AsyncIterable<Published>
  /** Those of the tenants asked for that there are. */
  some(tenantIds: ReadonlySet<string>): Promise<Published[]>
}

export type WatchKind = 'route' | 'manifest'

/** Takes lines; returns false when it is not keeping up and must be cut off. */
type Watcher = (text: string) => boolean

/** Holds what is published of all tenants in memory and sends it, and then each change, to every watch. */
export class WatchHub {
  readonly #source: PublishedSource
  readonly #onError: (error: Error) => void
  readonly #entries = new Map<string, Published>()
  /** With the one tenant that it may hear of; undefined: all. */
  readonly #watchers: Record<WatchKind, Map<Watcher, string | undefined>> = { route: new Map(), manifest: new Map() }
  #stale = new Set<string>()
  #reload = true
  #wasWhole = false
  #refreshing: Promise<void> | undefined

  constructor(source: PublishedSource, onError: (error: Error) => void) {
    this.#source = source
    this.#onError = onError
  }

  /** To be called for everything the change feed tells. */
  readonly onChange = (change: Change | 'resync'): void => {
    if (change === 'resync') this.#reload = true
    else if (change.kind === 'observed') return
    else this.#stale.add(change.tenantId)
    void this.#refresh()
  }

  /**
   * Gives the whole set, then what changes; until the returned function is called.
   * @param ofTenant of this tenant alone
   * @throws Error when the set can't be read
   */
  async watch(kind: WatchKind, watcher: Watcher, ofTenant?: string): Promise<() => void> {
    await this.#refresh()
    // A part of the set, ended with `synced`, would take all other tenants away. One that was whole once is good still.
    if (!this.#wasWhole) throw new Error('what is published is not known now')
    let text = ''
    for (const entry of this.#entries.values()) {
      const value = entry[kind]
      if (value !== undefined && concerns(ofTenant, entry.tenantId)) text += line({ type: 'put', entry: value })
    }
    // No await between the copy and the subscription: nothing can fall between.
    this.#watchers[kind].set(watcher, ofTenant)
    watcher(text + line({ type: 'synced' }))
    return () => this.#watchers[kind].delete(watcher)
  }

  /** Sends a sign of life to every watch; to be called every `watchPingSeconds`. */
  ping(): void {
    for (const kind of ['route', 'manifest'] as const) this.#report(kind, undefined, line({ type: 'ping' }))
  }

  /** One at a time; what becomes stale meanwhile is read by the next round. */
  #refresh(): Promise<void> {
    this.#refreshing ??= (async () => {
      // Not before this is assigned: with nothing to do, the end below would come first.
      await Promise.resolve()
      try {
        while (this.#reload || this.#stale.size > 0) {
          if (this.#reload) await this.#readAll()
          else await this.#readSome()
        }
      } catch (cause) {
        this.#reload = true
        this.#onError(new Error('what is published could not be read', { cause }))
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
    this.#wasWhole = true
  }

  async #readSome(): Promise<void> {
    const requested = this.#stale
    this.#stale = new Set()
    const found = await this.#source.some(requested).catch((cause: unknown) => {
      for (const tenantId of requested) this.#stale.add(tenantId)
      throw cause
    })
    for (const entry of found) {
      requested.delete(entry.tenantId)
      this.#put(entry)
    }
    for (const tenantId of requested) this.#remove(tenantId)
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

  /** `tenantId` is whom it is about; undefined: everybody. */
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
