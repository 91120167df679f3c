// Paths and headers of the calls between the parts. None of them is reachable through the gateway's public door.

/**
 * Proves that a call comes from a part of the same installation. Value: the installation's internal token, or a tenant's
 * token where one of the two ends is the tenant's own runtime.
 */
export const internalTokenHeader = 'x-tenantry-internal'

/** Set by the gateway alone; names the tenant to the runtime. Whatever a client sent under it is removed. */
export const tenantHeader = 'x-tenantry-tenant'

/** Set by the gateway on every request it forwards, and on its answer: one id through all logs. */
export const requestIdHeader = 'x-request-id'

/** Set by the gateway: the URL prefix at which the client sees the tenant, e.g. `/t/acme` or the empty string. */
export const basePathHeader = 'x-tenantry-base-path'

/**
 * Set to `1` by a runtime on an error with which it rejected a request before it touched anything of the tenant: credentials
 * that are not valid or are missing where they are required, an unknown route, a URL that cannot be read. The gateway counts
 * such a request as rejected, and removes the header. Without it, with a status below 400, or with a body of unknown length
 * or of more than 4,096 bytes, a response is billable. Functions cannot set it.
 */
export const rejectedHeader = 'x-tenantry-rejected'

/** All internal headers begin with this; a gateway drops whatever a client sends under it. */
export const internalHeaderPrefix = 'x-tenantry-'

/**
 * Paths of the calls between the parts, by what they are for; functions make the path of one tenant. Each call carries
 * `internalTokenHeader` unless its line says otherwise.
 */
export const internalPaths = {
  /** Control plane → watchers, NDJSON of `WatchLine<TenantManifest>`; with a tenant's token, of that tenant alone. */
  watchManifests: '/internal/v1/watch/manifests',
  /** Control plane → watchers, NDJSON of `WatchLine<Route>`. */
  watchRoutes: '/internal/v1/watch/routes',
  /** Gateway → control plane: `UsagePush` → `UsageResponse`. */
  usage: '/internal/v1/usage',
  /** Gateway → control plane: `LeaseCall`, answered by `LeaseResponse`. */
  leases: '/internal/v1/leases',
  /**
   * Runtime → control plane, and a dedicated tenant's runtime → gateway: `GET` → the tenant's usage, as the operators'
   * API shows it.
   */
  ownUsage: (tenantId: string) => `/internal/v1/tenants/${tenantId}/own-usage`,
  /** Gateway → control plane: `POST` without a body wakes a paused tenant; idempotent, 202. */
  wake: (tenantId: string) => `/internal/v1/tenants/${tenantId}/wake`,
  /** On runtime and gateway: liveness of the process, no token needed. */
  live: '/internal/v1/live',
  /** On a runtime, and on a gateway for a dedicated tenant's runtime: `GET` → `TenantHealth`. */
  tenantHealth: (tenantId: string) => `/internal/v1/tenants/${tenantId}/health`,
  /** As above: `GET` → `TenantStorageUsage`. */
  tenantUsage: (tenantId: string) => `/internal/v1/tenants/${tenantId}/usage`,
  /** As above: `GET` → `HomeCounters`, of this hour and the `?hours=N` before it, at most 999. */
  tenantRecords: (tenantId: string) => `/internal/v1/tenants/${tenantId}/books`,
  /** On a runtime: `GET` → `StorageState`. */
  storageState: '/internal/v1/storage',
  /** On a runtime, and on a gateway for a dedicated tenant's: `GET` → `StorageState` of that tenant alone. */
  tenantStorageState: (tenantId: string) => `/internal/v1/tenants/${tenantId}/storage`,
  /** As for health: `DELETE` removes the tenant's files and closes its pool; idempotent. */
  tenantData: (tenantId: string) => `/internal/v1/tenants/${tenantId}/data`,
  /** On a gateway: `GET` → `AppliedRoute`, or 404. */
  route: (tenantId: string) => `/internal/v1/routes/${tenantId}`,
  /** On a gateway: `GET` → `Activity`. */
  activity: '/internal/v1/activity',
} as const
