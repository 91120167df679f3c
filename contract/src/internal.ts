// Paths and headers of the calls between the parts. The gateway's public listeners serve none of them.

/**
 * Header that proves that a call comes from a part of the same installation. Its value is the installation's internal
 * token, or a tenant's token if one of the two parts is the tenant's own runtime.
 */
export const internalTokenHeader = 'x-tenantry-internal'

/** Header that names the tenant to the runtime. Only the gateway sets it, and removes a client's value. */
export const tenantHeader = 'x-tenantry-tenant'

/** Header with an ID that appears in all logs. The gateway sets it on every forwarded request and on its response. */
export const requestIdHeader = 'x-request-id'

/**
 * Header with the URL prefix at which the client sees the tenant, for example `/t/acme` or the empty string. The
 * gateway sets it.
 */
export const basePathHeader = 'x-tenantry-base-path'

/**
 * Header that a runtime sets to `1` on an error with which it rejected a request before it accessed anything of the
 * tenant: invalid or missing credentials, an unknown route, a malformed URL. The gateway counts such a request as
 * rejected, and removes the header. Without it, with a status below 400, or with a body of unknown length or of more
 * than 4,096 bytes, a response is billable. Functions cannot set it.
 */
export const rejectedHeader = 'x-tenantry-rejected'

/** Prefix of all internal headers. A gateway removes a client's headers with this prefix. */
export const internalHeaderPrefix = 'x-tenantry-'

/**
 * The cookie of sessions of the web console. Cookies ignore ports, so a browser also sends it to a gateway of the same host;
 * the gateway removes it, because no tenant may receive it.
 */
export const consoleCookie = 'tenantry_console'

/**
 * Whether a runtime checks the structure of a home. Where tenants share a database, Postgres needs the longer for this the more
 * homes there are, because it reads the functions of all homes that have the name of one that is called.
 */
export type HomeStructure = 'checked' | 'trusted'

/**
 * Paths of the calls between the parts, by purpose. A function returns the path of one tenant. Each call has
 * `internalTokenHeader` unless its line states otherwise.
 */
export const internalPaths = {
  /**
   * Control plane → watchers, NDJSON of `WatchLine<TenantManifest>`, with `?region=ID` for tenants of that region; with a
   * tenant's token, only for that tenant.
   */
  watchManifests: '/internal/v1/watch/manifests',
  /** Control plane → watchers, NDJSON of `WatchLine<Route>`. */
  watchRoutes: '/internal/v1/watch/routes',
  /** Control plane → gateways, NDJSON of `WatchLine<BlockedAddress, 'address'>`. */
  watchBlockedAddresses: '/internal/v1/watch/blocked-addresses',
  /** Gateway → control plane: `UsagePush` → `UsageResponse`. */
  usage: '/internal/v1/usage',
  /** Gateway → control plane: `CertificateCall` → `CertificateResponse`. */
  sqlCertificate: '/internal/v1/sql-certificate',
  /** Gateway → control plane: `LeaseCall` → `LeaseResponse`. */
  leases: '/internal/v1/leases',
  /**
   * Runtime → control plane, and a dedicated tenant's runtime → gateway: `GET` → the tenant's usage, as in the
   * operators' API.
   */
  ownUsage: (tenantId: string) => `/internal/v1/tenants/${tenantId}/own-usage`,
  /** Gateway → control plane: `POST` without a body wakes a paused tenant; idempotent, 202. */
  wake: (tenantId: string) => `/internal/v1/tenants/${tenantId}/wake`,
  /** Runtime and gateway: liveness of the process, without a token. */
  live: '/internal/v1/live',
  /** Runtime: `GET` → metrics in Prometheus' format. */
  metrics: '/internal/v1/metrics',
  /**
   * Runtime, and gateway for a dedicated tenant's runtime: `GET` → `TenantHealth`. Only a shared runtime accepts a request
   * that trusts the structure of the home.
   */
  tenantHealth: (tenantId: string, structure: HomeStructure = 'checked') =>
    `/internal/v1/tenants/${tenantId}/health${structure === 'trusted' ? '?structure=trusted' : ''}`,
  /** Runtime, and gateway for a dedicated tenant's runtime: `GET` → `TenantStorageUsage`. */
  tenantUsage: (tenantId: string) => `/internal/v1/tenants/${tenantId}/usage`,
  /**
   * Runtime, and gateway for a dedicated tenant's runtime: `GET` → `HomeCounters` of this hour and the `?hours=N`
   * before it, at most 999.
   */
  tenantRecords: (tenantId: string) => `/internal/v1/tenants/${tenantId}/books`,
  /** Runtime → another runtime of the same tenants: a WebSocket with the broadcasts and the presence of its clients. */
  realtimeRelay: '/internal/v1/realtime-relay',
  /** Runtime: `GET` → `StorageState`. */
  storageState: '/internal/v1/storage',
  /** Runtime, and gateway for a dedicated tenant's: `GET` → `StorageState` of that tenant only. */
  tenantStorageState: (tenantId: string) => `/internal/v1/tenants/${tenantId}/storage`,
  /**
   * Runtime, and gateway for a dedicated tenant's runtime: `DELETE` removes the tenant's files and closes its pool;
   * idempotent.
   */
  tenantData: (tenantId: string) => `/internal/v1/tenants/${tenantId}/data`,
  /** Gateway: `GET` → `AppliedRoute`, or 404. */
  route: (tenantId: string) => `/internal/v1/routes/${tenantId}`,
  /** Gateway: `GET` → `Activity`. */
  activity: '/internal/v1/activity',
} as const
