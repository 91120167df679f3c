// The limits of the gateway. Times are in milliseconds, sizes in bytes.
import type { EgressProxyLimits } from './egress/egress-proxy.ts'
import type { StorageRelayLimits } from './storage-relay/storage-relay.ts'

export interface Limits extends EgressProxyLimits, StorageRelayLimits {
  urlBytes: number
  headerBytes: number
  /** The maximum number of connections to the public and to the internal server. */
  connections: number
  internalConnections: number
  /** The maximum number of connections of one client address to the public server. */
  connectionsPerAddress: number
  /**
   * The number of connections that an address keeps when the maximum of all is open, even if a request is in progress on
   * each.
   */
  connectionShare: number
  /** The maximum number of connections that have not sent a whole request head: in total, and of one address. */
  heads: number
  headsPerAddress: number
  /** The time for which a connection may be without a whole request head, whatever the number of others. */
  headGrace: number
  /** The maximum number of connections to all runtimes together. */
  runtimeSockets: number
  /** The maximum number of connections of one address within the tenants' range, for each listener. */
  tenantConnections: number
  tenantInternalConnections: number
  tenantSqlConnections: number
  /**
   * The maximum number of requests in progress, upgraded connections included: in total, of one tenant, and of one client
   * address.
   */
  requests: number
  requestsPerTenant: number
  requestsPerAddress: number
  /** The maximum number of requests in progress on one connection, which its client sends without waiting for responses. */
  requestsPerConnection: number
  /** The maximum number of bytes that are buffered of all request bodies. */
  bodyBytes: number
  /** The minimum rate of a request body, and the time by which it may be behind. */
  bodyBytesPerSecond: number
  bodyLag: number
  /** The number of rejected requests of one client address, less those served: by second, and in a burst. */
  rejectionsPerSecond: number
  rejectionsBurst: number
  /** The time from the connection's first byte to the end of the request head. */
  headTimeout: number
  /** The maximum time between two chunks of a request body. */
  bodyIdleTimeout: number
  /** The maximum time for which a client may accept nothing of a waiting response. */
  readerIdleTimeout: number
  keepAliveTimeout: number
  connectTimeout: number
  /** The time between two checks of the runtimes, and the time that one which does not respond has to accept a connection. */
  watchInterval: number
  /** The time for which a request whose runtime cannot be reached is retried, from its first try. */
  reachTimeout: number
  /** The time from the whole request to the head of the runtime's response. */
  responseTimeout: number
  /** `responseTimeout` for functions, which run up to 300 s (specification, section 8). */
  functionResponseTimeout: number
  /** The maximum time between two chunks of a runtime's response. */
  responseIdleTimeout: number
  /** The time for which a client waits for a runtime's `100 Continue` before the gateway accepts its body anyway. */
  continueTimeout: number
  /** The maximum number of bytes that are read of a body after the response, so that the client receives the response. */
  remainingBytes: number
  /** Requests and SQL logins that wait for paused tenants to wake: for one tenant, for all tenants, and the time limit. */
  waitingPerTenant: number
  waiting: number
  wakeTimeout: number
  /** Requests that wait until the control plane has leased their tenant more of its monthly quota. */
  leaseWaitingPerTenant: number
  leaseWaiting: number
  /** The maximum number of watches of one tenant's manifest that its runtime may hold open through the gateway. */
  watchesPerTenant: number
  /** The time limit of a call between the control plane and a tenant's own runtime, to the head of the response. */
  relayTimeout: number
  /** The maximum size of an SQL client's startup packet. */
  startupBytes: number
  /** The time from an SQL client's connection to its admission by Postgres, without the wait for a paused tenant. */
  loginTimeout: number
  /** The maximum number of SQL clients that Postgres has admitted. */
  sqlSessionsPerTenant: number
  sqlSessions: number
  /**
   * The maximum number of further SQL connections, which no Postgres has admitted yet or which cancel a query: in total,
   * and of one address.
   */
  sqlUnauthenticated: number
  sqlUnauthenticatedPerAddress: number
  /**
   * The maximum number of logins that use a tenant's Postgres connections before it admits them, its own runtime's
   * included.
   */
  sqlLoginsPerTenant: number
  sqlLoginsPerTenantAndAddress: number
  /** The maximum number of SQL logins of one address that wait for paused tenants to wake. */
  sqlWaitingPerAddress: number
}

/**
 * The default limits. Together they stay below the 16,384 file descriptors of the gateway's container (docs/gateway.md).
 */
export const defaultLimits: Limits = {
  urlBytes: 65_536,
  headerBytes: 16_384,
  connections: 5_000,
  internalConnections: 1_920,
  connectionsPerAddress: 1_250,
  connectionShare: 250,
  heads: 1_000,
  headsPerAddress: 250,
  headGrace: 1_000,
  runtimeSockets: 4_000,
  tenantConnections: 128,
  tenantInternalConnections: 64,
  tenantSqlConnections: 32,
  requests: 3_600,
  requestsPerTenant: 1_000,
  requestsPerAddress: 1_000,
  requestsPerConnection: 100,
  bodyBytes: 64 * 1024 * 1024,
  bodyBytesPerSecond: 1_000,
  bodyLag: 30_000,
  rejectionsPerSecond: 50,
  rejectionsBurst: 500,
  headTimeout: 15_000,
  bodyIdleTimeout: 30_000,
  readerIdleTimeout: 60_000,
  keepAliveTimeout: 65_000,
  connectTimeout: 2_000,
  watchInterval: 500,
  reachTimeout: 2_000,
  responseTimeout: 60_000,
  functionResponseTimeout: 310_000,
  responseIdleTimeout: 300_000,
  continueTimeout: 1_000,
  remainingBytes: 8 * 1024 * 1024,
  waitingPerTenant: 1_000,
  waiting: 2_000,
  wakeTimeout: 20_000,
  leaseWaitingPerTenant: 200,
  leaseWaiting: 1_000,
  watchesPerTenant: 4,
  relayTimeout: 60_000,
  startupBytes: 10_000,
  loginTimeout: 10_000,
  sqlSessionsPerTenant: 20,
  sqlSessions: 1_000,
  sqlUnauthenticated: 250,
  sqlUnauthenticatedPerAddress: 50,
  sqlLoginsPerTenant: 15,
  sqlLoginsPerTenantAndAddress: 10,
  sqlWaitingPerAddress: 10,
  egressConnections: 128,
  egressConnectionsPerTenant: 16,
  egressStorageConnections: 128,
  egressHeads: 16,
  egressOpensPerSecond: 20,
  egressOpensBurst: 100,
  egressBytesPerSecond: 10_000_000,
  egressBytesBurst: 20_000_000,
  egressHeadTimeout: 5_000,
  egressConnectTimeout: 10_000,
  egressIdleTimeout: 310_000,
  storageRequests: 512,
  storageRequestsPerTenant: 32,
  storageIdleTimeout: 60_000,
}
