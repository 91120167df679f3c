// Functions (specification, section 1.3) as an area of the runtime.
import { lookup } from 'node:dns/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Pace } from '../events/follow-events.ts'
import { Followers } from '../events/followers.ts'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
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
import { LogRetention } from './logs/log-retention.ts'
import { positionsPerRun } from './logs/read-log.ts'
import { ModuleCache } from './module/module-cache.ts'
import { addReportRoutes } from './reports/report-routes.ts'
import { addDeliveryRoutes } from './triggers/delivery-routes.ts'
import { defaultDispatchPace, type DispatchPace } from './triggers/dispatch.ts'
import { Dispatcher } from './triggers/dispatcher.ts'
import { installTriggers } from './triggers/table-triggers.ts'
import { addWebhookRoute } from './triggers/webhook-routes.ts'

/** Of the logs of one tenant, at once. */
const maxFollowers = 100

export interface FunctionsModuleOptions {
  limits?: Partial<PoolLimits>
  authenticator: Authenticator
  /** Of those who follow logs. */
  followPace?: Pace | undefined
  now: () => Date
  /** Milliseconds, monotonic. */
  elapsed: () => number
  onError: (error: Error) => void
  /** The storage area's. */
  files: FileStore
  /** A function may have changed something of a tenant's. */
  onWrite: (tenantId: string) => void
  /** Told of each run whose end was written. */
  onEnd?: InvokeDeps['onEnd']
  /** Private networks that functions may reach all the same. */
  reachable: Networks
  /** All addresses of a name, as the machine resolves it. */
  resolve?: (hostname: string) => Promise<string[]>
  /** Whether functions can reach anything beyond the networks of this machine; by its routes without. */
  hasWayOut?: () => Promise<boolean>
  /** Told at the start what the machine allows to shut executors off from. */
  onConfinement?: (confinement: Confinement) => void
  tenants: () => Iterable<Tenant>
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Other runtimes serve the same tenants, and may change their functions. */
  hasSiblings?: boolean
  dispatchPace?: Partial<DispatchPace>
  /** From 0 to 1. */
  random: () => number
}

export interface FunctionsModule extends RuntimeModule {
  /** Something of the tenant's may have been written. */
  notify(tenantId: string): void
}

/** A function that another runtime has deployed is started by its trigger here, too, after so much time. */
const siblingsMilliseconds = 60_000

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
    resolve: options.resolve ?? lookUpAll,
    hasWayOut: options.hasWayOut ?? hasDefaultRoute,
  }
  const pool = new ExecutorPool({ ...defaultPoolLimits, ...limits }, onError)
  const followers = new Followers({
    sequence: 'function_logs_seq_seq',
    what: 'logs',
    most: maxFollowers,
    positionsPerRow: positionsPerRun,
    authenticator: options.authenticator,
    tenantOf,
    pace: options.followPace,
  })
  const logs = new LogRetention((tenantId) => followers.notify(tenantId), onError)
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
    recheckMilliseconds: hasSiblings ? siblingsMilliseconds : undefined,
    pace: { ...defaultDispatchPace, ...dispatchPace },
    async invoke(tenant, call) {
      if (log === undefined) throw new Error('nothing is dispatched before the routes are there')
      return (await invoke(deps, tenant, { ...call, log })).status
    },
  })

  const onTrigger = async (tenant: Tenant, triggers: readonly Trigger[]) => {
    const has = (kind: 'Database' | 'Schedule') =>
      triggers.some((trigger) => typeof trigger === 'object' && kind in trigger)
    if (has('Database')) {
      // The function is as it was asked for; its table follows, now or when the dispatcher comes to it.
      await installTriggers(tenant).catch((cause: unknown) =>
        onError(new Error(`${tenant.id}: a table's trigger waits`, { cause })),
      )
    }
    if (has('Database') || has('Schedule')) dispatcher.changed(tenant.id)
  }

  return {
    name: 'functions',
    async routes(app) {
      log = app.log
      await addFunctionRoutes(app, { pool, now, onTrigger })
      await addDeliveryRoutes(app)
      addReportRoutes(app, { followers, now: () => now().getTime() })
      await app.register(async (calls) => addInvokeRoutes(calls, deps))
      await app.register(async (calls) => addWebhookRoute(calls, deps))
    },
    notify: (tenantId) => dispatcher.notify(tenantId),
    // The other areas work without.
    start: () => findConfinement().then(onConfinement, onError),
    async run(signal) {
      await Promise.all([dispatcher.run(signal), followers.run(signal)])
    },
    async close() {
      await pool.close()
      await logs.idle()
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
      followers.evict(tenantId)
    },
    async removeData(tenantId) {
      pool.end(tenantId)
      modules.evict(tenantId)
      dispatcher.evict(tenantId)
      followers.evict(tenantId)
    },
  }
}

async function lookUpAll(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address)
}
