// Functions (specification, section 1.3) as a module of the runtime.
import { lookup } from 'node:dns/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Pace } from '../events/follow-events.ts'
import { Followers } from '../events/followers.ts'
import type { EgressProxySettings } from '../egress/egress-proxy.ts'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import { HourlyRetention } from '../tenancy/hourly-retention.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { addFunctionRoutes } from './deployment/function-routes.ts'
import { findConfinement, type Confinement } from './executor/confinement.ts'
import { ExecutorPool, defaultPoolLimits, type PoolLimits } from './executor/pool.ts'
import type { Trigger } from './function.ts'
import type { Networks } from '@tenantry/contract'
import { hasDefaultRoute } from './host/default-route.ts'
import type { FileStore } from './host/file-store.ts'
import type { HostDeps } from './host/host-calls.ts'
import { addInvokeRoutes } from './invocations/invoke-routes.ts'
import { invoke, type InvokeDeps } from './invocations/invoke.ts'
import { trimInvocations } from './invocations/trim-invocations.ts'
import { LogRetention } from './logs/log-retention.ts'
import { positionsPerRun } from './logs/read-log.ts'
import { ModuleCache } from './module/module-cache.ts'
import { addReportRoutes } from './reports/report-routes.ts'
import { addDeliveryRoutes } from './triggers/delivery-routes.ts'
import { defaultDispatchPace, type DispatchPace } from './triggers/dispatch.ts'
import { Dispatcher } from './triggers/dispatcher.ts'
import { installTriggers } from './triggers/table-triggers.ts'
import { addWebhookRoute } from './triggers/webhook-routes.ts'

/** Concurrent followers of one tenant's logs. */
const maxFollowers = 100

export interface FunctionsModuleOptions {
  limits?: Partial<PoolLimits>
  authenticator: Authenticator
  /** The pace at which logs are read for followers. */
  followPace?: Pace | undefined
  now: () => Date
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onError: (error: Error) => void
  /** The files of the storage module. */
  files: FileStore
  /** Called after a function may have changed a tenant's data. */
  onWrite: (tenantId: string) => void
  /** Called after the end of a run was written. */
  onEnd?: InvokeDeps['onEnd']
  /** Private networks that functions may reach. */
  reachable: Networks
  /** The egress proxy through which functions reach other hosts; undefined to reach them directly. */
  egress?: EgressProxySettings | undefined
  /** Returns all addresses of a host name; by default, those of the system's resolver. */
  resolve?: (hostname: string) => Promise<string[]>
  /** Whether functions can reach anything beyond the machine's own networks; by default, whether it has a default route. */
  hasWayOut?: () => Promise<boolean>
  /** Called at the start with the confinement that the machine allows for executors. */
  onConfinement?: (confinement: Confinement) => void
  tenants: () => Iterable<Tenant>
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Whether other runtimes serve the same tenants and may change their functions. */
  hasSiblings?: boolean
  dispatchPace?: Partial<DispatchPace>
  /** Returns a random number from 0 to 1. */
  random: () => number
}

export interface FunctionsModule extends RuntimeModule {
  readonly retention: HourlyRetention
  /** Notifies the module that the tenant's data may have changed. */
  notify(tenantId: string): void
}

/** Time after which triggers of functions that another runtime deployed are found. */
const siblingRecheckMilliseconds = 60_000

export function createFunctionsModule(options: FunctionsModuleOptions): FunctionsModule {
  const {
    limits,
    now,
    onError,
    onConfinement,
    onWrite,
    tenants,
    tenantOf,
    hasSiblings = false,
    dispatchPace,
    random,
    elapsed,
  } = options
  const host: HostDeps = {
    files: options.files,
    onWrite,
    onError,
    reachable: options.reachable,
    egress: options.egress,
    resolve: options.resolve ?? lookUpAll,
    hasWayOut: options.hasWayOut ?? hasDefaultRoute,
  }
  const pool = new ExecutorPool({ ...defaultPoolLimits, ...limits }, elapsed, onError)
  const followers = new Followers({
    sequence: 'function_logs_seq_seq',
    what: 'logs',
    maxFollowers,
    positionsPerRow: positionsPerRun,
    authenticator: options.authenticator,
    tenantOf,
    pace: options.followPace,
  })
  const logs = new LogRetention((tenantId) => followers.notify(tenantId), onError)
  const retention = new HourlyRetention({
    what: 'Old records of invocations',
    trim: trimInvocations,
    elapsed,
    onError,
  })
  const modules = new ModuleCache()
  const deps: InvokeDeps = {
    pool,
    modules,
    logs,
    now: () => now().getTime(),
    elapsed,
    onError,
    host,
    ...(options.onEnd === undefined ? {} : { onEnd: options.onEnd }),
  }
  let log: FastifyBaseLogger | undefined
  const dispatcher = new Dispatcher({
    tenants,
    tenantOf,
    now,
    elapsed,
    random,
    onError,
    recheckMilliseconds: hasSiblings ? siblingRecheckMilliseconds : undefined,
    pace: { ...defaultDispatchPace, ...dispatchPace },
    async invoke(tenant, call) {
      if (log === undefined) throw new Error('A trigger was dispatched before the routes were added.')
      return (await invoke(deps, tenant, { ...call, log })).status
    },
  })

  const onTrigger = async (tenant: Tenant, triggers: readonly Trigger[]) => {
    const has = (kind: 'Database' | 'Schedule') =>
      triggers.some((trigger) => typeof trigger === 'object' && kind in trigger)
    if (has('Database')) {
      // The function is stored. If its table's trigger can't be installed now, the dispatcher retries it.
      await installTriggers(tenant).catch((cause: unknown) =>
        onError(new Error(`${tenant.id}: A table's trigger could not be installed. It is retried.`, { cause })),
      )
    }
    if (has('Database') || has('Schedule')) dispatcher.changed(tenant.id)
  }

  return {
    name: 'functions',
    retention,
    async routes(app) {
      log = app.log
      await addFunctionRoutes(app, { pool, now, onTrigger })
      await addDeliveryRoutes(app)
      addReportRoutes(app, { followers, now: () => now().getTime() })
      await app.register(async (calls) => addInvokeRoutes(calls, deps))
      await app.register(async (calls) => addWebhookRoute(calls, deps))
    },
    notify: (tenantId) => dispatcher.notify(tenantId),
    // The other modules of the runtime work without a confinement.
    start: () => findConfinement().then(onConfinement, onError),
    async run(signal) {
      await Promise.all([dispatcher.run(signal), followers.run(signal)])
    },
    async close() {
      await pool.close()
      await Promise.all([logs.idle(), retention.idle()])
    },
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    async usage(tenant) {
      const { rows } = await tenant.database.query(
        { role: 'service', reason: 'usage' },
        "select count(*) as count from function_invocations where timestamp >= date_trunc('month', now(), 'UTC')",
      )
      return { function_invocations: Number(rows[0]?.['count'] ?? 0) }
    },
    evict(tenantId) {
      pool.evict(tenantId)
      modules.evict(tenantId)
      dispatcher.evict(tenantId)
      retention.evict(tenantId)
      followers.evict(tenantId)
    },
    async removeData(tenantId) {
      pool.end(tenantId)
      modules.evict(tenantId)
      dispatcher.evict(tenantId)
      retention.evict(tenantId)
      followers.evict(tenantId)
    },
  }
}

async function lookUpAll(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address)
}
