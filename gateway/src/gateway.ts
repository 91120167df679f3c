// Puts the gateway together from its parts and runs it: its servers, the watch of routes, the pushes of usage.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as SocketServer } from 'node:net'
import { join } from 'node:path'
import { internalPaths } from '@tenantry/contract'
import type { ControlPlane } from './control-call.ts'
import { LiveConnections } from './forward/live-connections.ts'
import { PassedBytes } from './forward/passed-bytes.ts'
import { RuntimeTokens } from './forward/runtime-tokens.ts'
import { Upstreams } from './forward/upstreams.ts'
import { HttpHandler } from './http/http-handler.ts'
import { createInternalServer } from './http/internal-server.ts'
import { createPublicServer } from './http/public-server.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { openMetering, type Metering } from './meter/metering.ts'
import { LeaseRenewer } from './quota/lease-renewer.ts'
import { leaseFile, slotFile } from './quota/persisted-lease.ts'
import { Quota } from './quota/quota.ts'
import { PostgresProxy } from './postgres-proxy/postgres-proxy.ts'
import { Relay } from './relay/relay.ts'
import { RouteTable } from './routes/route-table.ts'
import { ConnectionBounds, type TenantAddresses } from './tenants/connection-bounds.ts'
import type { Ipv4Range } from './tenants/ipv4-range.ts'
import { wakeThrough } from './waiting/wake.ts'
import { WaitingRoom } from './waiting/waiting-room.ts'

/** What a gateway is started with: its settings, and what is outside of it, such as time and chance. */
export interface GatewayOptions {
  host: string
  /** 0 takes a free one, for tests. */
  port: number
  internalHost: string
  internalPort: number
  /** The door to the tenants' databases: on `host`, and in TLS with a certificate and its key in PEM. */
  postgres?: { port: number; tls?: { cert: string; key: string } }
  /** Proxies in front of the gateway whose word about their clients is taken; none by default. */
  trustedProxies?: readonly Ipv4Range[]
  /** Connections from there are bounded by address; without it none are. */
  tenantAddresses?: TenantAddresses
  controlUrl: string
  internalToken: string
  /** The gateway's own directory. */
  data: string
  domain: string
  source: string
  /** Milliseconds since 1970. */
  now: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** A new UUID: for each request, and for the start of the gateway. */
  newId: () => string
  /** Calls the control plane. Tenants' requests are forwarded otherwise. */
  fetch: typeof globalThis.fetch
  /** Collects V8's young generation. */
  collect: () => void
  log: Log
  limits?: Partial<Limits>
  /** Another one after a crash of the machine; what only a crash could have lost is then not believed. */
  machineBoot?: string
  /** Milliseconds between usage pushes. */
  pushInterval?: number
  /** Milliseconds for which a gateway that has never heard the hour waits with its first routes. */
  clockWait?: number
  /** Milliseconds between two calls about leases with nothing urgent. */
  leaseInterval?: number
  /** Milliseconds for which a request or a connection waits for a lease at most. */
  leaseWait?: number
  /** Milliseconds for which one call about leases is waited for. */
  leaseTimeout?: number
  /** Counters held at most; see CounterStore. */
  counterLimit?: number
}

/** A structured log, as pino writes it. */
export interface Log {
  /** Logs what happened as it should. */
  info(fields: object, message: string): void
  /** Logs what went wrong and is tried again, or what an operator should look at. */
  warn(fields: object, message: string): void
  /** Logs what helps to follow one request. */
  debug(fields: object, message: string): void
}

/** A gateway that listens; ports are those it was given by the system where 0 was asked for. */
export interface Gateway {
  readonly port: number
  readonly internalPort: number
  /** Undefined without a door to Postgres. */
  readonly postgresPort: number | undefined
  /** Answers what is under way (for `grace` milliseconds at most), pushes the last counts, and ends. Idempotent. */
  stop(grace?: number): Promise<void>
}

const sweepMilliseconds = 50

/**
 * Starts a gateway, which listens when this resolves.
 * @throws Error when a port is taken, a certificate is none, or the data directory cannot be read
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

/** Starts a gateway as `startGateway` does, with a metering that is open already; it is stopped with the gateway. */
export async function startGatewayWith(options: GatewayOptions, metering: Metering): Promise<Gateway> {
  const { log, controlUrl, internalToken, fetch } = options
  const limits = { ...defaultLimits, ...options.limits }
  const upstreams = new Upstreams(limits, options.elapsed)
  const live = new LiveConnections()
  const tokens = new RuntimeTokens(internalToken)
  const { meter } = metering
  const onError = (error: Error) => log.warn({ err: error }, error.message)
  const stored = (name: string) => ({ path: join(options.data, name), machineBoot: options.machineBoot ?? '', onError })
  const control: ControlPlane = { controlUrl, internalToken, fetch }
  const leases = new LeaseRenewer({
    control,
    source: options.source,
    boot: metering.boot,
    unfinished: metering.unfinished,
    now: options.now,
    elapsed: options.elapsed,
    file: leaseFile(stored('leases.ndjson')),
    slotFile: slotFile(stored('slots.ndjson')),
    onError,
    waitingPerTenant: limits.leaseWaitingPerTenant,
    waiting: limits.leaseWaiting,
    ...(options.leaseInterval === undefined ? {} : { interval: options.leaseInterval }),
    ...(options.leaseWait === undefined ? {} : { maxWait: options.leaseWait }),
    ...(options.leaseTimeout === undefined ? {} : { timeout: options.leaseTimeout }),
  })
  leases.load()
  const quota = new Quota({ leases, elapsed: options.elapsed, now: options.now })
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
      live.endOf(tenantId)
      leases.slots.reject(tenantId)
      if (isGone) meter.evict(tenantId)
    },
    onChanged: (tenantId, route) => {
      quota.changed(tenantId, route)
      waiting.changed(tenantId, route)
    },
    onError,
  })
  await routes.load()
  const httpHandler = new HttpHandler({
    domain: options.domain,
    routes,
    upstreams,
    meter,
    quota,
    live,
    waiting,
    tokens,
    limits,
    passed: new PassedBytes(options.collect),
    newRequestId: options.newId,
    trustedProxies: options.trustedProxies ?? [],
    elapsed: options.elapsed,
    onError: (error, call) =>
      log.debug({ err: error, tenant: call.route.tenant_id, request: call.requestId }, 'a runtime failed a request'),
  })
  const publicServer = createPublicServer({ handler: httpHandler, limits, newRequestId: options.newId, onError })
  const relay = new Relay({ controlUrl, routes, tokens, limits })
  const internalServer = createInternalServer({ routes, meter, quota, relay, internalToken, limits })
  const postgresProxy =
    options.postgres && new PostgresProxy({ ...options.postgres, routes, waiting, meter, quota, live, limits })
  if (options.tenantAddresses !== undefined) {
    const bounds = new ConnectionBounds({
      addresses: options.tenantAddresses,
      elapsed: options.elapsed,
      onRejected: (listener, address) =>
        log.warn({ listener, address }, 'an address of a tenant holds as many connections as it may; more are closed'),
    })
    bounds.apply('public', publicServer, limits.tenantConnections)
    bounds.apply('internal', internalServer, limits.tenantInternalConnections)
    if (postgresProxy !== undefined) bounds.apply('postgres', postgresProxy.server, limits.tenantSqlConnections)
  }
  const [port = 0, internalPort = 0, postgresPort] = await listenOnAll([
    { server: publicServer, host: options.host, port: options.port },
    { server: internalServer, host: options.internalHost, port: options.internalPort },
    ...(postgresProxy === undefined
      ? []
      : [{ server: postgresProxy.server, host: options.host, port: postgresProxy.port }]),
  ])
  metering.run()
  const watching = new AbortController()
  const leasing = new AbortController()
  // Who has no routes yet serves nobody before the hour is known.
  const watch = metering.clockKnown(watching.signal).then(() => routes.run(watching.signal))
  const lease = leases.run(leasing.signal)
  // Out of file descriptors, for one: those who have a connection are served on.
  for (const server of [publicServer, internalServer, postgresProxy?.server]) server?.on('error', onError)
  log.info({ port, internalPort, postgresPort, routes: routes.size }, 'the gateway listens')

  const stop = async (grace: number): Promise<void> => {
    httpHandler.closing = true
    watching.abort()
    waiting.close()
    postgresProxy?.close()
    await closeWithin(publicServer, grace, () => live.endAll())
    internalServer.close()
    internalServer.closeAllConnections()
    await Promise.all([upstreams.destroy(), relay.destroy()])
    // Last, because every request that ends counts.
    leasing.abort()
    await Promise.all([watch, metering.stop(), lease])
    log.info({}, 'the gateway has stopped')
  }
  let stopped: Promise<void> | undefined
  return { port, internalPort, postgresPort, stop: (grace = 10_000) => (stopped ??= stop(grace)) }
}

interface Listening {
  server: SocketServer
  host: string
  /** 0 takes a free one. */
  port: number
}

/** @returns the ports @throws when one is taken; then none is listened on */
async function listenOnAll(all: readonly Listening[]): Promise<number[]> {
  const ports: number[] = []
  try {
    for (const { server, host, port } of all) ports.push(await listen(server, host, port))
  } catch (cause) {
    for (const { server } of all) server.close()
    throw cause
  }
  return ports
}

async function listen(server: SocketServer, host: string, port: number): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port')
  return address.port
}

/** Takes nothing new, ends idle and live connections, and cuts what is left after the grace. */
async function closeWithin(server: Server, grace: number, endLive: () => void): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  endLive()
  // A connection becomes idle when its answer ends, which may be any time.
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMilliseconds)
  const timer = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearInterval(sweep)
  clearTimeout(timer)
}
