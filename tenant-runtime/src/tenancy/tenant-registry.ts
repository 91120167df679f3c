// The tenants of this runtime, from the watch of manifests.
import { TenantManifest, WatchedTable, internalPaths } from '@tenantry/contract'
import type { Connections } from '../database/connections.ts'
import { ScopedDatabase } from '../database/scoped-database.ts'
import type { Tenant } from './tenant.ts'

interface TenantRegistryOptions {
  controlUrl: string
  internalToken: string
  /** The file with a copy of the manifests, so that the runtime can start without a control plane. */
  file: string
  connections: Connections
  fetch: typeof globalThis.fetch
  /** Called when a tenant changed or was deleted, so that its data in memory must be evicted. */
  onChange: (tenantId: string) => void
  onError: (error: Error) => void
}

export class TenantRegistry {
  readonly #table: WatchedTable<TenantManifest>
  readonly #connections: Connections
  /** Tenants, which are created on first use, because most of a thousand are inactive. */
  readonly #tenants = new Map<string, Tenant>()

  constructor({ controlUrl, internalToken, file, connections, fetch, onChange, onError }: TenantRegistryOptions) {
    this.#connections = connections
    this.#table = new WatchedTable({
      url: new URL(internalPaths.watchManifests, controlUrl).href,
      internalToken,
      schema: TenantManifest,
      file,
      fetch,
      onError,
      onChange: (tenantId, manifest) => {
        const before = this.#tenants.get(tenantId)
        this.#tenants.delete(tenantId)
        if (manifest === undefined || before?.manifest.home.url !== manifest.home.url) connections.evict(tenantId)
        onChange(tenantId)
      },
    })
  }

  /** Returns the tenant as its newest manifest describes it; undefined for one that this runtime does not serve. */
  get(tenantId: string): Tenant | undefined {
    const known = this.#tenants.get(tenantId)
    if (known !== undefined) return known
    const manifest = this.#table.get(tenantId)
    if (manifest === undefined) return undefined
    const tenant: Tenant = {
      id: manifest.tenant_id,
      name: manifest.name,
      generation: manifest.generation,
      limits: manifest.limits,
      manifest,
      database: new ScopedDatabase(this.#connections, {
        tenantId,
        url: manifest.home.url,
        ddlUrl: manifest.home.ddl_url,
      }),
    }
    this.#tenants.set(tenantId, tenant)
    return tenant
  }

  /** Returns all tenants, for background work. */
  *all(): Generator<Tenant> {
    for (const { tenant_id } of this.#table.values()) {
      const tenant = this.get(tenant_id)
      if (tenant !== undefined) yield tenant
    }
  }

  /** Whether this runtime knows its tenants, from the control plane or from disk. */
  get filled(): boolean {
    return this.#table.synced || this.#table.size > 0
  }

  /** Reads the tenants of an earlier run, so that they are served before the control plane is reached. */
  load(): Promise<void> {
    return this.#table.load()
  }

  /** Watches the control plane until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#table.run(signal)
  }
}
