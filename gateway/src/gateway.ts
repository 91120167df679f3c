// Assembles the gateway from its parts and runs it: its servers, the watch of routes, the pushes of usage.
import { join } from 'node:path'
import { ByteTurns, internalPaths, LimitedReports } from '@tenantry/contract'
import { createCertificateSource, type PostgresTls } from './certificates/certificate-source.ts'
import { BlockedAddresses } from './clients/blocked-addresses.ts'
import { ClientAddresses } from './clients/client-addresses.ts'
import { ConnectionTable } from './clients/connection-table.ts'
import { RequestShares } from './clients/request-shares.ts'
import type { ControlPlane } from './control-call.ts'
import { isTrusted } from './forward/client-origin.ts'
import { BodyBudget } from './forward/body-budget.ts'
import { LiveConnections } from './forward/live-connections.ts'
import { PassedBytes } from './forward/passed-bytes.ts'
import { RuntimeTokens } from './forward/runtime-tokens.ts'
import { watchRuntimes } from './forward/runtime-watch.ts'
import { Upstreams } from './forward/upstreams.ts'
import { HttpHandler } from './http/http-handler.ts'
import { createInternalServer } from './http/internal-server.ts'
import { createPublicServer } from './http/public-server.ts'
import { createResolver } from './egress/destinations.ts'
import type { EgressConfig } from './egress/egress-config.ts'
import { EgressProxy } from './egress/egress-proxy.ts'
import type { StorageRelayConfig } from './storage-relay/relay-config.ts'
import { openStorageRelay } from './storage-relay/open-relay.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { closeWithin, listenOnAll } from './listeners.ts'
import { openMetering, type Metering } from './meter/metering.ts'
import { LeaseRenewer } from './quota/lease-renewer.ts'
import { leaseFile, slotFile } from './quota/persisted-lease.ts'
import { Quota } from './quota/quota.ts'
import { AccessLog, type AccessLogOptions } from './monitor/access-log.ts'
import { readBounds } from './monitor/bounds.ts'
import { createMetrics } from './monitor/metrics.ts'
import { PostgresProxy } from './postgres-proxy/postgres-proxy.ts'
import { Relay } from './relay/relay.ts'
import { RouteTable } from './routes/route-table.ts'
import { ConnectionBounds, type TenantAddresses } from './tenants/connection-bounds.ts'
import type { Ipv4Range } from './tenants/ipv4-range.ts'
import { wakeThrough } from './waiting/wake.ts'
import { WaitingRoom } from './waiting/waiting-room.ts'

/** The part of a stop's time in which long-lived connections end. */
const liveShare = 0.8

/** The settings of a gateway, and its dependencies such as time and randomness. */
export interface GatewayOptions {
  host: string
  /** The public port; 0 selects a free one, for tests. */
  port: number
  /** Whether other gateways listen on the public port, too; false by default. */
  isPortShared?: boolean
  internalHost: string
  internalPort: number
  /**
   * The Postgres proxy: its port on `host`, and its certificate. Without a certificate it does not use TLS. `requireTls`:
   * whether it rejects logins without TLS; by default only with a certificate of the operator.
   */
  postgres?: { port: number; tls?: PostgresTls; requireTls?: boolean }
  /** The egress proxy: its port on `internalHost`, and its rules. */
  egress?: EgressConfig
  /** The storage relay: its port on `internalHost`, and its bucket. */
  storageRelay?: StorageRelayConfig
  /** Proxies in front of the gateway whose forwarding headers are trusted; none by default. */
  trustedProxies?: readonly Ipv4Range[]
  /** The range of tenants' addresses, whose connections are limited by address; without it no connection is. */
  tenantAddresses?: TenantAddresses
  controlUrl: string
  internalToken: ControlPlane['internalToken']
  /** The gateway's own directory. */
  data: string
  domain: string
  source: string
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Returns a new UUID, for each request and for the start of the gateway. */
  newId: () => string
  /** Calls the control plane. Tenants' requests are forwarded by other means. */
  fetch: typeof globalThis.fetch
  /** Collects V8's young generation. */
  collect: () => void
  log: Log
  limits?: Partial<Limits>
  /** Logs a sample of the requests; without it none. */
  accessLog?: AccessLogOptions
  /**
   * The machine's boot ID. It changes when the machine restarts. Files that a crash can damage are not trusted then.
   */
  machineBoot?: string
  /** Milliseconds between usage pushes. */
  pushInterval?: number
  /** Milliseconds for which a gateway that has never received the hour waits with its first routes. */
  clockWait?: number
  /** Milliseconds between two calls for leases when nothing is urgent. */
  leaseInterval?: number
  /** The maximum number of milliseconds for which a request or a connection waits for a lease. */
  leaseWait?: number
  /** The timeout of one call for leases, in milliseconds. */
  leaseTimeout?: number
  /** Milliseconds after which the certificate of the Postgres proxy is renewed, or read again. */
  certificateInterval?: number
  /** The maximum number of counters; see CounterStore. */
  counterLimit?: number
}

/** A structured log with pino's signatures. */
export interface Log {
  /** Logs an expected event. */
  info(fields: object, message: string): void
  /** Logs a failure that is retried, or a fact that an operator should check. */
  warn(fields: object, message: string): void
  /** Logs details for following one request. */
  debug(fields: object, message: string): void
}

/** A gateway that listens. A port that was requested as 0 is the one that the system assigned. */
export interface Gateway {
  readonly port: number
  readonly internalPort: number
  /** Undefined without a Postgres proxy. */
  readonly postgresPort: number | undefined
  /** Undefined without an egress proxy. */
  readonly egressPort: number | undefined
  /** Finishes the requests in progress within `grace` milliseconds, pushes the last counters, and ends. Idempotent. */
  stop(grace?: number): Promise<void>
}

/**
 * Starts a gateway, which listens when this resolves.
 * @throws Error when a port is in use, a certificate is invalid, or the data directory cannot be read
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const onError = (error: Error) => options.log.warn({ err: error }, error.message)
  const metering = await openMetering({ ...options, onError })
  try {
    return await startGatewayWith(options, metering)
  } catch (cause) {
    await metering.stop()
    throw cause
  }
}

/** Starts a gateway as `startGateway` does, with an open metering, which stops with the gateway. */
export async function startGatewayWith(options: GatewayOptions, metering: Metering): Promise<Gateway> {
  const { log, controlUrl, internalToken, fetch } = options
  const limits = { ...defaultLimits, ...options.limits }
  const upstreams = new Upstreams(limits, options.elapsed)
  const runtimeWatch = watchRuntimes({ upstreams, interval: limits.watchInterval })
  const live = new LiveConnections((tenantId) => {
    const phase = routes.get(tenantId)?.phase ?? 'deleted'
    return phase !== 'deleted' && phase !== 'suspended' && !quota.isSpent(tenantId)
  })
  const tokens = new RuntimeTokens(internalToken)
  const { meter } = metering
  const onError = (error: Error) => log.warn({ err: error }, error.message)
  const fileOptions = (name: string) => ({
    path: join(options.data, name),
    machineBoot: options.machineBoot ?? '',
    onError,
  })
  const control: ControlPlane = { controlUrl, internalToken, fetch }
  const leases = new LeaseRenewer({
    control,
    source: options.source,
    boot: metering.boot,
    unfinished: metering.unfinished,
    now: options.now,
    elapsed: options.elapsed,
    file: leaseFile(fileOptions('leases.ndjson')),
    slotFile: slotFile(fileOptions('slots.ndjson')),
    onError,
    waitingPerTenant: limits.leaseWaitingPerTenant,
    waiting: limits.leaseWaiting,
    ...(options.leaseInterval === undefined ? {} : { interval: options.leaseInterval }),
    ...(options.leaseWait === undefined ? {} : { maxWait: options.leaseWait }),
    ...(options.leaseTimeout === undefined ? {} : { timeout: options.leaseTimeout }),
  })
  leases.load()
  const quota = new Quota({ leases, elapsed: options.elapsed, now: options.now, controlNow: metering.controlNow })
  const waiting = new WaitingRoom({ limits, wake: wakeThrough(control), onError })
  const routes = new RouteTable({
    url: `${controlUrl}${internalPaths.watchRoutes}`,
    internalToken,
    file: join(options.data, 'routes.ndjson'),
    // New routes come with the hour that their requests are counted in, however late the control plane was.
    fetch: async (...call) => {
      await metering.requestHour()
      return fetch(...call)
    },
    onRuntimes: (added, removed) => upstreams.changed(added, removed),
    onUnserved: (tenantId, isGone) => {
      live.endUnserved(tenantId)
      leases.slots.reject(tenantId)
      if (isGone) meter.evict(tenantId)
    },
    onChanged: (tenantId, route) => {
      quota.changed(tenantId, route)
      if (quota.isSpent(tenantId)) {
        live.endOf(tenantId)
        leases.slots.reject(tenantId)
      }
      waiting.changed(tenantId, route)
    },
    onError,
  })
  await routes.load()
  const rejectionRate = { per_second: limits.rejectionsPerSecond, burst: limits.rejectionsBurst }
  const addresses = new ClientAddresses((address) => isProxy(address, options), {
    rate: rejectionRate,
    elapsed: options.elapsed,
  })
  const blocked = new BlockedAddresses({
    url: `${controlUrl}${internalPaths.watchBlockedAddresses}`,
    internalToken,
    file: join(options.data, 'blocked-addresses.ndjson'),
    fetch,
    isExempt: (address) => isProxy(address, options),
    now: options.now,
    onBlocked: () => closeBlocked(),
    onError,
  })
  await blocked.load()
  const table = new ConnectionTable({ limits, addresses, elapsed: options.elapsed })
  const shares = new RequestShares(limits)
  const bodies = new BodyBudget(limits.bodyBytes)
  const httpHandler = new HttpHandler({
    domain: options.domain,
    routes,
    upstreams,
    meter,
    quota,
    live,
    waiting,
    addresses,
    blocked,
    shares,
    bodies,
    ...(options.accessLog === undefined
      ? {}
      : { accessLog: new AccessLog(options.accessLog, options.elapsed, (entry) => log.info(entry, 'Request.')) }),
    tokens,
    limits,
    passed: new PassedBytes(options.collect),
    turns: new ByteTurns(),
    newRequestId: options.newId,
    trustedProxies: options.trustedProxies ?? [],
    elapsed: options.elapsed,
    onError: (error, call) =>
      log.debug(
        { err: error, tenant: call.route.tenant_id, request: call.requestId },
        'A runtime failed to respond to a request.',
      ),
    onDefect: onError,
  })
  const reports = new LimitedReports(options.elapsed)
  const publicServer = createPublicServer({
    handler: httpHandler,
    parts: { table, blocked, addresses, shares },
    limits,
    newRequestId: options.newId,
    elapsed: options.elapsed,
    onRejected: (address) => {
      if (reports.isDue(address))
        log.warn({ address }, 'A client address has the maximum number of connections. Further ones are closed.')
    },
  })
  const relay = new Relay({ controlUrl, routes, tokens, limits })
  const egressProxy =
    options.egress &&
    new EgressProxy({
      rules: options.egress.rules,
      resolve: createResolver(),
      internalToken,
      limits,
      elapsed: options.elapsed,
      onRejected: (tenant, destination) =>
        log.warn({ tenant, destination }, 'A tenant may not reach a destination through the egress proxy.'),
    })
  const storageRelay = openStorageRelay(options.storageRelay, { ...options, limits, log, reports })
  const sources = {
    limits,
    table,
    addresses,
    blocked,
    shares,
    bodies,
    sockets: upstreams.sockets,
    waiting,
    meter,
    egress: egressProxy?.shares,
  }
  const certificate = await createCertificateSource(options.postgres?.tls, {
    ...options,
    control,
    onReplaced: () => log.info({}, 'The certificate of the SQL port was replaced.'),
    onError,
  })
  const metrics = createMetrics({
    bounds: () => readBounds(sources),
    totals: metering.totals,
    closed: () => table.closedForOthers,
    certificateExpiresAt: () => certificate?.current.expiresAt,
  })
  const internalServer = createInternalServer({ routes, meter, quota, relay, metrics, internalToken, limits })
  const postgresProxy =
    options.postgres &&
    new PostgresProxy({
      port: options.postgres.port,
      certificate: certificate?.current,
      requireTls: options.postgres.requireTls ?? typeof options.postgres.tls === 'object',
      routes,
      waiting,
      meter,
      quota,
      live,
      blocked,
      limits,
    })
  const closeBlocked = () => {
    const isBlocked = (address: string) => blocked.has(address)
    const closed = table.closeOf(isBlocked) + (postgresProxy?.closeOf(isBlocked) ?? 0)
    blocked.rejected += closed
    if (closed > 0) log.info({ closed }, 'Connections of blocked addresses were closed.')
  }
  if (options.tenantAddresses !== undefined) {
    const bounds = new ConnectionBounds({
      addresses: options.tenantAddresses,
      elapsed: options.elapsed,
      onRejected: (listener, address) =>
        log.warn(
          { listener, address },
          "A tenant's address has the maximum number of connections. Further ones are closed.",
        ),
    })
    bounds.apply('public', publicServer, limits.tenantConnections)
    bounds.apply('internal', internalServer, limits.tenantInternalConnections)
    if (storageRelay !== undefined) bounds.apply('internal', storageRelay.server, limits.tenantInternalConnections)
    if (postgresProxy !== undefined) bounds.apply('postgres', postgresProxy.server, limits.tenantSqlConnections)
  }
  const listening = await listenOnAll([
    {
      server: publicServer,
      host: options.host,
      port: options.port,
      isPublic: true,
      isShared: options.isPortShared ?? false,
    },
    { server: internalServer, host: options.internalHost, port: options.internalPort },
    postgresProxy && { server: postgresProxy.server, host: options.host, port: postgresProxy.port, isPublic: true },
    egressProxy && { server: egressProxy.server, host: options.internalHost, port: options.egress?.port ?? 0 },
    storageRelay && {
      server: storageRelay.server,
      host: options.internalHost,
      port: options.storageRelay?.port ?? 0,
    },
  ])
  const [port = 0, internalPort = 0, postgresPort, egressPort] = listening.map((one) => one?.port)
  const [publicListening, , postgresListening] = listening
  metering.run()
  const watching = new AbortController()
  const leasing = new AbortController()
  // A gateway without routes serves no request before it knows the hour.
  const watch = metering.clockKnown(watching.signal).then(() => routes.run(watching.signal))
  const watchBlocked = blocked.run(watching.signal)
  const certify = certificate?.run(watching.signal)
  const lease = leases.run(leasing.signal)
  // An error such as the lack of file descriptors does not end established connections.
  const others = [postgresProxy?.server, egressProxy?.server, storageRelay?.server]
  for (const server of [publicServer, internalServer, ...others]) server?.on('error', onError)
  log.info({ port, internalPort, postgresPort, egressPort, routes: routes.size }, 'The gateway is listening.')

  const stop = async (grace: number): Promise<void> => {
    httpHandler.closing = true
    watching.abort()
    waiting.close()
    void postgresListening?.close()
    postgresProxy?.close()
    await closeWithin(publicServer, publicListening, grace, () => live.endAll(grace * liveShare))
    egressProxy?.close()
    storageRelay?.close()
    internalServer.close()
    internalServer.closeAllConnections()
    runtimeWatch.stop()
    await Promise.all([upstreams.destroy(), relay.destroy()])
    // Last, because every request that ends counts.
    leasing.abort()
    await Promise.all([watch, watchBlocked, certify, metering.stop(), lease])
    log.info({}, 'The gateway has stopped.')
  }
  let stopped: Promise<void> | undefined
  return { port, internalPort, postgresPort, egressPort, stop: (grace = 10_000) => (stopped ??= stop(grace)) }
}

/** Whether other clients' requests come from the address: from a named proxy, or from the region's own addresses. */
function isProxy(address: string, { trustedProxies = [], tenantAddresses }: GatewayOptions): boolean {
  if (isTrusted(address, trustedProxies)) return true
  return tenantAddresses?.except !== undefined && isTrusted(address, [tenantAddresses.except])
}
