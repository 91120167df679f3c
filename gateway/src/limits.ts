// The bounds within which the gateway serves. Times in milliseconds, sizes in bytes.

export interface Limits {
  urlBytes: number
  headerBytes: number
  /** Connections at once at the public and the internal server; more are closed. */
  connections: number
  internalConnections: number
  /** Connections to all runtimes together. */
  runtimeSockets: number
  /** Open connections of one address within the tenants' range, at each listener. */
  tenantConnections: number
  tenantInternalConnections: number
  tenantSqlConnections: number
  /** From the connection's first byte to the end of the request head. */
  headTimeout: number
  /** Between two pieces of a request body. */
  bodyIdleTimeout: number
  /** How long a client may take nothing of an answer that waits for it. */
  readerIdleTimeout: number
  keepAliveTimeout: number
  connectTimeout: number
  /** How long a request whose runtime cannot be reached is tried again, from its first try. */
  reachTimeout: number
  /** From the whole request to the head of the runtime's answer. */
  responseTimeout: number
  /** The same for functions, which run up to 300 s (specification, section 8). */
  functionResponseTimeout: number
  /** Between two pieces of a runtime's answer. */
  responseIdleTimeout: number
  /** How long a client waits for a runtime's `100 Continue` before its body is taken anyway. */
  continueTimeout: number
  /** What is still read of a body whose request was answered already, so that the answer gets through. */
  remainingBytes: number
  /** Requests and SQL logins that wait for paused tenants to wake: for one tenant, for all of them, and how long. */
  waitingPerTenant: number
  waiting: number
  wakeTimeout: number
  /** Requests that wait until the control plane has leased their tenant more of its monthly quota. */
  leaseWaitingPerTenant: number
  leaseWaiting: number
  /** Watches of one tenant's manifest that its runtime may hold open through the gateway. */
  watchesPerTenant: number
  /** A call between the control plane and a tenant's own runtime, to the head of its answer. */
  relayTimeout: number
  /** An SQL client's startup packet. */
  startupBytes: number
  /** From an SQL client's connection until its Postgres has let it in; the wait for a paused tenant aside. */
  loginTimeout: number
  /** SQL clients that Postgres has let in. */
  sqlSessionsPerTenant: number
  sqlSessions: number
  /** Connections beyond the sessions: those that no Postgres has let in yet, and cancellations; of them, one address. */
  sqlUnauthenticated: number
  sqlUnauthenticatedPerAddress: number
  /** Clients that Postgres has not let in yet take places there too, those of the tenant's own runtime among them. */
  sqlLoginsPerTenant: number
  sqlLoginsPerTenantAndAddress: number
  /** SQL logins of one address that wait for paused tenants to wake. */
  sqlWaitingPerAddress: number
}

/** What the gateway may hold open at once stays below the 16,384 file descriptors of its container (docs/gateway.md). */
export const defaultLimits: Limits = {
  urlBytes: 65_536,
  headerBytes: 16_384,
  connections: 5_000,
  internalConnections: 2_048,
  runtimeSockets: 4_000,
  tenantConnections: 128,
  tenantInternalConnections: 64,
  tenantSqlConnections: 32,
  headTimeout: 15_000,
  bodyIdleTimeout: 30_000,
  readerIdleTimeout: 60_000,
  keepAliveTimeout: 65_000,
  connectTimeout: 2_000,
  reachTimeout: 2_000,
  responseTimeout: 60_000,
  functionResponseTimeout: 310_000,
  responseIdleTimeout: 300_000,
  continueTimeout: 1_000,
  remainingBytes: 8 * 1024 * 1024,
  waitingPerTenant: 100,
  waiting: 1_000,
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
}
