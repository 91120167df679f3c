// The routes of all tenants by ID and by name: the control plane's watch, an index, and a copy on disk.
import { Route, WatchedTable, type InternalToken } from '@tenantry/contract'
import { SharedParts } from './shared-parts.ts'

interface RouteTableOptions {
  /** The absolute URL of the watch of routes. */
  url: string
  internalToken: InternalToken
  /** The file of the last known routes, for a start without a control plane. */
  file: string
  fetch: typeof globalThis.fetch
  /** Called when the set of runtimes of any tenant may have changed. */
  onRuntimes?: (added: readonly string[], removed: readonly string[]) => void
  /** Called when a tenant is no longer served; `isDeleted` when it never will be. */
  onUnserved?: (tenantId: string, isDeleted: boolean) => void
  /** Called after every change, as the last callback; `undefined` when the tenant was deleted. */
  onChanged?: (tenantId: string, route: Route | undefined) => void
  onError?: (error: Error) => void
}

export class RouteTable {
  readonly #table: WatchedTable<Route>
  readonly #byName = new Map<string, Route>()
  /** The indexed route of each tenant, so that a change can undo its effects. */
  readonly #listed = new Map<string, Route>()
  /** Names that two tenants claimed at the same time: when one releases the name, the other must be indexed again. */
  readonly #contested = new Set<string>()
  readonly #parts = new SharedParts()
  readonly #onRuntimes: RouteTableOptions['onRuntimes']
  readonly #onUnserved: RouteTableOptions['onUnserved']
  readonly #onChanged: RouteTableOptions['onChanged']

  constructor(options: RouteTableOptions) {
    this.#onRuntimes = options.onRuntimes
    this.#onUnserved = options.onUnserved
    this.#onChanged = options.onChanged
    this.#table = new WatchedTable<Route>({
      url: options.url,
      internalToken: options.internalToken,
      schema: Route,
      key: 'tenant_id',
      file: options.file,
      fetch: options.fetch,
      onChange: (tenantId, route) => this.#changed(tenantId, route),
      ...(options.onError === undefined ? {} : { onError: options.onError }),
    })
  }

  /** Reads the routes of an earlier run. */
  load(): Promise<void> {
    return this.#table.load()
  }

  /** Watches the control plane until aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#table.run(signal)
  }

  get(tenantId: string): Route | undefined {
    return this.#table.get(tenantId)
  }

  /** Returns the route of the tenant that has the name now; a deleted tenant has none. */
  named(name: string): Route | undefined {
    return this.#byName.get(name)
  }

  get size(): number {
    return this.#table.size
  }

  /** Whether the whole set was read from the control plane in this run. */
  get synced(): boolean {
    return this.#table.synced
  }

  #changed(tenantId: string, route: Route | undefined): void {
    if (route !== undefined) this.#parts.share(route)
    const before = this.#listed.get(tenantId)
    const after = route?.phase === 'deleted' ? undefined : route
    if (after === undefined) this.#listed.delete(tenantId)
    else this.#listed.set(tenantId, after)
    if (before !== undefined && before.name !== after?.name) this.#release(before)
    if (after !== undefined) this.#claim(after)
    this.#onRuntimes?.(after?.runtimes ?? [], before?.runtimes ?? [])
    if (after === undefined || after.phase === 'suspended') this.#onUnserved?.(tenantId, route === undefined)
    this.#onChanged?.(tenantId, route)
  }

  #claim(route: Route): void {
    const holder = this.#byName.get(route.name)
    if (holder !== undefined && holder.tenant_id !== route.tenant_id) this.#contested.add(route.name)
    this.#byName.set(route.name, route)
  }

  #release(route: Route): void {
    if (this.#byName.get(route.name)?.tenant_id !== route.tenant_id) return
    this.#byName.delete(route.name)
    if (!this.#contested.delete(route.name)) return
    for (const other of this.#listed.values()) if (other.name === route.name) this.#claim(other)
  }
}
