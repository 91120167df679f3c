// The tenants of this runtime, from the watch of manifests.
import {
  TenantManifest,
  WatchedTable,
  internalPaths,
  isServed,
  type InternalToken,
  type RuntimeShare,
} from '@tenantry/contract'
import type { Connections } from '../database/connections.ts'
import type { Replicas } from '../database/replicas/replicas.ts'
import { ScopedDatabase, type HomeLogins } from '../database/scoped-database.ts'
import { manifestFile, otherManifestFiles, removeStaleManifests } from './manifest-files.ts'
import type { Tenant } from './tenant.ts'

interface TenantRegistryOptions {
  controlUrl: string
  internalToken: InternalToken
  /** ID of the region whose tenants it serves; undefined if it receives those of all regions. */
  region: string | undefined
  /** Number of the other runtimes with which it serves its tenants; absent: it is not reported. */
  siblings?: number
  /** The directory with copies of the manifests, so that the runtime can start without a control plane. */
  data: string
  /** The tenants that this runtime serves. */
  share: RuntimeShare
  connections: Connections
  /** The replicas of clusters; absent: reads always wait for a primary. */
  replicas?: Replicas
  fetch: typeof globalThis.fetch
  /** Called when a tenant changed or was deleted, so that its data in memory must be evicted. */
  onChange: (tenantId: string) => void
  onError: (error: Error) => void
}

export class TenantRegistry {
  readonly #table: WatchedTable<TenantManifest>
  readonly #connections: Connections
  readonly #replicas: Replicas | undefined
  /** Tenants, which are created on first use, because most of a thousand are inactive. */
  readonly #tenants = new Map<string, Tenant>()
  /** The logins of these tenants. A change of a password reaches requests that have begun before it, too. */
  readonly #logins = new Map<string, HomeLogins>()

  constructor(options: TenantRegistryOptions) {
    const { internalToken, data, share, fetch, onChange, onError } = options
    this.#connections = options.connections
    this.#replicas = options.replicas
    this.#table = new WatchedTable({
      url: watchUrl(options),
      internalToken,
      schema: TenantManifest,
      key: 'tenant_id',
      file: manifestFile(data, share.number),
      otherFiles: () => otherManifestFiles(data, share.number),
      isOwn: (tenantId) => isServed(tenantId, share),
      fetch,
      onError,
      onSynced: () => void removeStaleManifests(data, share).catch(onError),
      onChange: (tenantId, manifest) => {
        this.#tenants.delete(tenantId)
        this.#renew(tenantId, manifest)
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
    const logins = this.#logins.get(tenantId) ?? loginsOf(manifest)
    this.#logins.set(tenantId, logins)
    const tenant: Tenant = {
      id: manifest.tenant_id,
      name: manifest.name,
      generation: manifest.generation,
      limits: manifest.limits,
      unserved: manifest.unserved,
      manifest,
      database: new ScopedDatabase(this.#connections, logins, this.#replicas),
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

  /** Uses the logins of a new manifest from now on. */
  #renew(tenantId: string, manifest: TenantManifest | undefined): void {
    if (manifest === undefined) {
      // Work that has begun before must not open sessions, with which a later home of the tenant could be used.
      Object.assign(this.#logins.get(tenantId) ?? {}, {
        url: '',
        ddlUrl: '',
        otherUrls: [],
        otherDdlUrls: [],
        members: [],
      })
      this.#logins.delete(tenantId)
      this.#connections.evict(tenantId)
      this.#replicas?.evict(tenantId)
      return
    }
    const renewed = loginsOf(manifest)
    this.#connections.renew(renewed)
    Object.assign(this.#logins.get(tenantId) ?? {}, renewed)
  }

  /** Watches the control plane until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#table.run(signal)
  }
}

function loginsOf({ tenant_id: tenantId, home }: TenantManifest): HomeLogins {
  return {
    tenantId,
    url: home.url,
    ddlUrl: home.ddl_url,
    otherUrls: home.other_urls ?? [],
    otherDdlUrls: home.other_ddl_urls ?? [],
    members: home.members ?? [],
  }
}

/**
 * Returns the URL of the watch. A runtime of a tenant's own receives its tenant only if the tenant has that number of them. A
 * shared runtime receives the tenants of its share.
 */
function watchUrl({ controlUrl, region, siblings, share }: TenantRegistryOptions): string {
  const url = new URL(internalPaths.watchManifests, controlUrl)
  if (share.runtimes > 1) {
    url.searchParams.set('runtime', String(share.number))
    url.searchParams.set('runtimes', String(share.runtimes))
  }
  if (siblings !== undefined) url.searchParams.set('siblings', String(siblings))
  if (region !== undefined) url.searchParams.set('region', region)
  return url.href
}
