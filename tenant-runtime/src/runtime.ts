// The runtime: assembles its parts. Its dependencies, such as time and the control plane, are arguments: `main.ts` passes
// the real ones, tests their own.
import { listenWidely } from '@tenantry/contract'
import type { Logger } from 'pino'
import { createBounds, type BoundsLimits } from './bounds/index.ts'
import { buildApp } from './app.ts'
import type { Config } from './config.ts'
import { Connections, defaultConnectionLimits, type ConnectionLimits } from './database/connections.ts'
import { Replicas } from './database/replicas/replicas.ts'
import { createEventsModule, type EventsModule, type EventsModuleOptions } from './events/events-module.ts'
import {
  createFunctionsModule,
  type FunctionsModule,
  type FunctionsModuleOptions,
} from './functions/functions-module.ts'
import { executorsFor } from './functions/executor/pool.ts'
import { readConsoleFiles } from './console/console-files.ts'
import type { BodyPace } from './http/body-reader.ts'
import { followTables } from './functions/triggers/table-triggers.ts'
import { createMeteringModule } from './metering/metering-module.ts'
import { MessageMeter } from './metering/message-meter.ts'
import { StoredRuns } from './metering/stored-runs.ts'
import { relayMetrics } from './realtime/relay/relay-metrics.ts'
import { Relay } from './realtime/relay/relay.ts'
import { resolveHost } from './realtime/relay/resolve-host.ts'
import { createRealtimeModule, type RealtimeModule } from './realtime/realtime-module.ts'
import { createRestModule } from './rest/rest-module.ts'
import type { BlobBackend } from './storage/backend/backend.ts'
import { openBackend } from './storage/backend/open-backend.ts'
import type { StorageFailpoint } from './storage/failpoints.ts'
import { createStorageModule, type StorageModule, type StorageModuleOptions } from './storage/storage-module.ts'
import type { RuntimeModule } from './tenancy/runtime-module.ts'
import { Authenticator } from './tenancy/authenticate.ts'
import { TenantRegistry } from './tenancy/tenant-registry.ts'
import type { Tenant } from './tenancy/tenant.ts'

/** The tenants that a runtime serves. */
export interface Tenants extends Pick<TenantRegistry, 'get' | 'load' | 'run'> {
  /** All tenants that the runtime serves now. */
  all(): Iterable<Tenant>
}

/** The dependencies of the runtime. */
export interface RuntimeDeps {
  log: Logger
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Returns a number that is uniformly distributed in [0, 1). */
  random: () => number
  /** Returns a text that is different for each call, in all processes. */
  newId: () => string
  /** Calls the control plane, or the gateway that relays to it. Functions' own requests are sent by other means. */
  fetch: typeof fetch
  failpoint: StorageFailpoint
  /** Receives errors of background work. */
  onError: (error: Error) => void
  /** The tenants; by default those that the control plane reports. */
  tenants?: Tenants
  /** The store; by default the configured one. */
  backend?: BlobBackend
  /** The sizes of the budgets of memory; by default the configured ones. */
  bounds?: Partial<BoundsLimits>
  bodyPace?: BodyPace
  connectionLimits?: Partial<ConnectionLimits>
  storage?: Pick<StorageModuleOptions, 'abandonedMilliseconds'>
  functions?: Pick<FunctionsModuleOptions, 'limits' | 'followPace' | 'resolve' | 'hasWayOut' | 'dispatchPace'>
  events?: Pick<EventsModuleOptions, 'maxSubscribers' | 'pace'>
}

/** A runtime that does not listen yet. */
export interface Runtime {
  app: Awaited<ReturnType<typeof buildApp>>
  connections: Connections
  replicas: Replicas
  storage: StorageModule
  functions: FunctionsModule
  events: EventsModule
  realtime: RealtimeModule
  /** Evicts a tenant from memory that was deleted or has changed. */
  evict(tenantId: string): void
  /** Notifies the modules that a tenant's data may have changed. */
  notify(tenantId: string): void
  /** Starts the parts, once, before the runtime listens. Rejects when a part cannot work. */
  start(): Promise<void>
  /** Runs background work until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Closes the parts after the last request. */
  close(): Promise<void>
}

/**
 * Assembles a runtime. It does not read tenants or listen yet.
 * @throws Error when the store of files cannot be opened
 */
export async function openRuntime(config: Config, deps: RuntimeDeps): Promise<Runtime> {
  const { onError, failpoint, log } = deps
  const now = () => new Date(deps.now())
  const bounds = createBounds({ ...config.memory, ...deps.bounds })
  const limits = {
    ...defaultConnectionLimits,
    total: config.maxConnections,
    failoverMilliseconds: 1_000 * config.failoverSeconds,
    ...deps.connectionLimits,
  }
  const connections = new Connections(limits, bounds.results)
  const replicas = new Replicas({ limits, results: bounds.results, now: deps.elapsed })
  const evict = (tenantId: string) => {
    const tenant = tenantOf(tenantId)
    authenticator.uses.prune(tenantId, tenant)
    for (const module of modules) module.evict(tenantId)
    // Its files may have been removed here, before it has returned.
    if (tenant !== undefined) storage.readmit(tenantId)
  }
  const tenants: Tenants =
    deps.tenants ??
    new TenantRegistry({
      controlUrl: config.controlUrl,
      internalToken: config.internalToken,
      region: config.region,
      siblings: config.siblings,
      data: config.data,
      share: config.share,
      connections,
      replicas,
      fetch: deps.fetch,
      onChange: evict,
      onError,
    })
  const tenantOf = (id: string) => tenants.get(id)
  const authenticator = new Authenticator(deps.now)
  const notify = (tenantId: string) => {
    events.notify(tenantId)
    functions.notify(tenantId)
    realtime.notify(tenantId)
  }
  const events = createEventsModule({
    now,
    elapsed: deps.elapsed,
    authenticator,
    tenantOf,
    onError,
    ...deps.events,
  })
  const relay =
    config.siblingHosts.length === 0
      ? undefined
      : new Relay({
          hosts: config.siblingHosts,
          token: config.internalToken,
          instance: deps.newId(),
          endedSessions: {
            list: () => authenticator.sessions.listEnded(),
            add: (sessions) => authenticator.sessions.addEnded(sessions),
          },
          resolve: resolveHost,
          onError,
        })
  if (relay !== undefined) authenticator.sessions.whenEnded((session) => relay.endSession(session))
  const hasSiblings = config.siblings > 0
  const messages = new MessageMeter({
    data: config.data,
    share: config.share,
    hasSiblings,
    tenantOf,
    now: deps.now,
    newId: deps.newId,
    onError,
  })
  const realtime = createRealtimeModule({
    relay,
    messages,
    authenticator,
    tenantOf,
    bounds,
    compresses: config.compressesMessages,
    now: deps.now,
    elapsed: deps.elapsed,
    newId: deps.newId,
    onError,
  })
  const storage = createStorageModule({
    backend: deps.backend ?? (await openBackend(config.storage, config.data, failpoint)),
    tenants: () => tenants.all(),
    failpoint,
    limits: config.limits,
    region: config.region,
    now: deps.now,
    onError,
    ...deps.storage,
  })
  const runs = new StoredRuns({ data: config.data, share: config.share, onError })
  const functions: FunctionsModule = createFunctionsModule({
    now,
    elapsed: deps.elapsed,
    random: deps.random,
    onEnd: (tenantId, end) => runs.note(tenantId, end),
    authenticator,
    files: storage.files,
    tenants: () => tenants.all(),
    tenantOf,
    hasSiblings,
    reachable: config.functionsMayReach,
    egress: config.egress,
    onWrite: notify,
    limits: { total: executorsFor(config.share.runtimes) },
    onConfinement: (confinement) => log.info({ confinement }, 'The confinement of functions was determined.'),
    onError,
    ...deps.functions,
  })
  const rest = createRestModule({
    now,
    hasSiblings,
    allowsRollback: config.allowsRollback,
    allowsAggregates: config.allowsAggregates,
    sendsTiming: config.sendsTiming,
    onTables: followTables,
    onError,
  })
  const metering = createMeteringModule({
    ...config,
    fetch: deps.fetch,
    now,
    tenantOf,
    onRead(tenant) {
      events.retention.poll(tenant)
      functions.retention.poll(tenant)
      realtime.retention.poll(tenant)
    },
    runs,
    messages,
    documents: rest.documentBytes,
    files: storage.collector,
  })
  const modules: RuntimeModule[] = [storage, rest, functions, events, realtime, metering]
  const app = await buildApp({
    internalToken: config.internalToken,
    authenticator,
    hasSiblings,
    console: { files: await readConsoleFiles(config.consoleFiles), newId: deps.newId },
    modules,
    tenantOf,
    now,
    elapsed: deps.elapsed,
    bounds,
    metrics: relayMetrics(relay),
    bodyPace: deps.bodyPace,
    logger: log,
    onWrite: notify,
  })
  return {
    app,
    connections,
    replicas,
    storage,
    functions,
    events,
    realtime,
    evict,
    notify,

    async start() {
      await tenants.load()
      for (const module of modules) await module.start()
    },
    async run(signal) {
      await Promise.all([tenants.run(signal), ...modules.map((module) => module.run(signal))])
    },
    async close() {
      for (const module of modules) await module.close()
      await Promise.all([connections.close(), replicas.close()])
    },
  }
}

/** The maximum time for which a stop waits for requests in progress. */
const drainMilliseconds = 10_000

/** A runtime that serves. */
export interface RunningRuntime {
  /** Finishes the requests in progress within ten seconds, ends the loops, and closes everything. */
  stop(): Promise<void>
}

/**
 * Opens a runtime, starts it and listens.
 * @throws Error when a part cannot work, or the port is in use
 */
export async function startRuntime(config: Config, deps: RuntimeDeps): Promise<RunningRuntime> {
  const runtime = await openRuntime(config, deps)
  await runtime.start()
  const stopping = new AbortController()
  const loops = runtime.run(stopping.signal)
  const { server } = runtime.app
  const listening = await listenWidely(server, config, (options) => runtime.app.listen(options))
  deps.log.info({ host: config.host, port: config.port }, 'The runtime is listening.')
  return {
    async stop() {
      deps.log.info('The runtime is stopping.')
      stopping.abort()
      const cut = setTimeout(() => server.closeAllConnections(), drainMilliseconds)
      await Promise.all([listening.close(), runtime.app.close()])
      clearTimeout(cut)
      await loops
      await runtime.close()
    },
  }
}
