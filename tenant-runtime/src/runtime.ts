// The runtime: the only place that puts its parts together. What is outside of it, time and the control plane for example, is
// given to it: `main.ts` gives the real things, a test its own.
import { join } from 'node:path'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import type { Config } from './config.ts'
import { Connections, defaultConnectionLimits, type ConnectionLimits } from './database/connections.ts'
import { createEventsModule, type EventsModule, type EventsModuleOptions } from './events/events-module.ts'
import {
  createFunctionsModule,
  type FunctionsModule,
  type FunctionsModuleOptions,
} from './functions/functions-module.ts'
import { followTables } from './functions/triggers/table-triggers.ts'
import { createMeteringModule } from './metering/metering-module.ts'
import { ObservedRuns } from './metering/observed-runs.ts'
import { ObservedRunsFile } from './metering/observed-runs-file.ts'
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

/** What is outside of the runtime. */
export interface Outside {
  log: Logger
  /** Milliseconds since the epoch. */
  now: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** Uniform in [0, 1). */
  random: () => number
  /** Calls the control plane, or the gateway that relays to it. Functions' own requests are sent otherwise. */
  fetch: typeof fetch
  failpoint: StorageFailpoint
  /** Told of what went wrong in the background. */
  onError: (error: Error) => void
  /** Without it, those that the control plane tells of. */
  tenants?: Tenants
  /** Without it, the configured one. */
  backend?: BlobBackend
  connectionLimits?: Partial<ConnectionLimits>
  storage?: Pick<StorageModuleOptions, 'abandonedMilliseconds'>
  functions?: Pick<FunctionsModuleOptions, 'limits' | 'followPace' | 'resolve' | 'hasWayOut' | 'dispatchPace'>
  events?: Pick<EventsModuleOptions, 'maxSubscribers' | 'pace'>
}

/** A runtime that serves nobody yet. */
export interface Runtime {
  app: Awaited<ReturnType<typeof buildApp>>
  connections: Connections
  storage: StorageModule
  functions: FunctionsModule
  events: EventsModule
  /** Drops what is held in memory of a tenant that is gone or has changed. */
  evict(tenantId: string): void
  /** Something of the tenant's may have been written. */
  notify(tenantId: string): void
  /** Once, before it listens; throws when a part can't work. */
  start(): Promise<void>
  /** Work in the background, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Once nothing is served any more. */
  close(): Promise<void>
}

/**
 * Puts a runtime together; it reads no tenants and listens to nobody yet. @throws Error when the store of files can't
 * be opened
 */
export async function openRuntime(config: Config, outside: Outside): Promise<Runtime> {
  const { onError, failpoint, log } = outside
  const now = () => new Date(outside.now())
  const connections = new Connections({
    ...defaultConnectionLimits,
    total: config.maxConnections,
    ...outside.connectionLimits,
  })
  const evict = (tenantId: string) => {
    for (const module of modules) module.evict(tenantId)
  }
  const tenants: Tenants =
    outside.tenants ??
    new TenantRegistry({
      controlUrl: config.controlUrl,
      internalToken: config.internalToken,
      file: join(config.data, 'manifests.ndjson'),
      connections,
      fetch: outside.fetch,
      onChange: evict,
      onError,
    })
  const tenantOf = (id: string) => tenants.get(id)
  const authenticator = new Authenticator(outside.now)
  const notify = (tenantId: string) => {
    events.notify(tenantId)
    functions.notify(tenantId)
  }
  const events = createEventsModule({
    now,
    elapsed: outside.elapsed,
    authenticator,
    tenantOf,
    onError,
    ...outside.events,
  })
  const storage = createStorageModule({
    backend: outside.backend ?? (await openBackend(config.storage, config.data, failpoint)),
    tenants: () => tenants.all(),
    failpoint,
    limits: config.limits,
    now: outside.now,
    onError,
    ...outside.storage,
  })
  const runs = new ObservedRuns()
  const hasSiblings = config.siblings > 0
  const functions: FunctionsModule = createFunctionsModule({
    now,
    elapsed: outside.elapsed,
    random: outside.random,
    onEnd: (tenantId, end) => runs.note(tenantId, end),
    authenticator,
    files: storage.files,
    tenants: () => tenants.all(),
    tenantOf,
    hasSiblings,
    reachable: config.functionsMayReach,
    onWrite: notify,
    onConfinement: (confinement) => log.info({ confinement }, 'how functions are confined'),
    onError,
    ...outside.functions,
  })
  const rest = createRestModule({
    now,
    hasSiblings,
    allowsRollback: config.allowsRollback,
    onTables: followTables,
    onError,
  })
  const metering = createMeteringModule({
    ...config,
    fetch: outside.fetch,
    now,
    tenantOf,
    onRead: (tenant) => events.controller.poll(tenant),
    runs,
    observedFile: new ObservedRunsFile({ path: join(config.data, 'run-witness.ndjson'), observed: runs, onError }),
    documents: rest.documentBytes,
    files: storage.collector,
  })
  const modules: RuntimeModule[] = [storage, rest, functions, events, metering]
  const app = await buildApp({
    internalToken: config.internalToken,
    authenticator,
    modules,
    tenantOf,
    now,
    logger: log,
    onWrite: notify,
  })
  return {
    app,
    connections,
    storage,
    functions,
    events,
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
      await connections.close()
    },
  }
}

/** A stop waits so long for requests under way. */
const drainMilliseconds = 10_000

/** A runtime that serves. */
export interface RunningRuntime {
  /** Answers the requests in progress, for ten seconds at most, ends its loops, and closes what it has opened. */
  stop(): Promise<void>
}

/** Opens a runtime, starts it and listens. @throws Error when a part can't work, or the port is taken */
export async function startRuntime(config: Config, outside: Outside): Promise<RunningRuntime> {
  const runtime = await openRuntime(config, outside)
  await runtime.start()
  const stopping = new AbortController()
  const loops = runtime.run(stopping.signal)
  await runtime.app.listen({ host: config.host, port: config.port })
  outside.log.info({ host: config.host, port: config.port }, 'the runtime listens')
  return {
    async stop() {
      outside.log.info('stopping')
      stopping.abort()
      const cut = setTimeout(() => runtime.app.server.closeAllConnections(), drainMilliseconds)
      await runtime.app.close()
      clearTimeout(cut)
      await loops
      await runtime.close()
    },
  }
}
