// The control plane in this process: its API on a real Postgres, the controller running, and a stand-in for the region's
// runtime and gateway, which show what is published as soon as it is, unless the test says that they don't.
import { randomBytes, randomUUID } from 'node:crypto'
import { readNetworks, type ErrorBody, type TenantHealth } from '@tenantry/contract'
import type { FastifyPluginAsync } from 'fastify'
import pg from 'pg'
import pino from 'pino'
import type { Test } from 'tap'
import { buildApp } from '../../../control-plane/src/app.ts'
import type { BillingConfig } from '../../../control-plane/src/billing/billing-config.ts'
import { loadPdfFonts } from '../../../control-plane/src/billing/pdf-text.ts'
import { systemClock } from '../../../control-plane/src/platform/clock.ts'
import { createDriftReader } from '../../../control-plane/src/drift/read-drift.ts'
import { createHealthReader } from '../../../control-plane/src/health/read-health.ts'
import { HomeDatabases } from '../../../control-plane/src/homes/home-databases.ts'
import { loadHomeMigrations, migrationsFingerprint } from '../../../control-plane/src/homes/home-migrations.ts'
import { internalRoutes } from '../../../control-plane/src/watch/routes.ts'
import { leaseRoutes } from '../../../control-plane/src/quotas/routes-internal.ts'
import { WatchHub, type Published, type PublishedSource } from '../../../control-plane/src/watch/watch-hub.ts'
import type { BackupRoutesDeps } from '../../../control-plane/src/backups/routes.ts'
import type { OperationBody, TenantBody } from '../../../control-plane/src/tenants/tenant-body.ts'
import { newPlatformKey } from '../../../control-plane/src/keys/key-text.ts'
import type { Scope } from '../../../control-plane/src/keys/platform-key-store.ts'
import { createSeal, type Seal } from '../../../control-plane/src/platform/seal.ts'
import { createMetrics } from '../../../control-plane/src/metrics.ts'
import { measuredLeases } from '../../../control-plane/src/quotas/measured-leases.ts'
import { createAuditLog } from '../../../control-plane/src/audit/store.ts'
import { createBackupStore } from '../../../control-plane/src/backups/store.ts'
import { openBilling, type BillingParts } from '../../../control-plane/src/billing/billing-stores.ts'
import { ChangeFeed } from '../../../control-plane/src/platform/change-feed.ts'
import { openDatabase } from '../../../control-plane/src/platform/database.ts'
import { createKeptAnswers } from '../../../control-plane/src/platform/kept-answers.ts'
import { lead } from '../../../control-plane/src/platform/leader.ts'
import { migrate, readMigrations } from '../../../control-plane/src/platform/migrations.ts'
import { createPlanStore, recordRegions } from '../../../control-plane/src/plans/store.ts'
import { createPlatformKeyStore } from '../../../control-plane/src/keys/store.ts'
import { createPublishedSource } from '../../../control-plane/src/watch/store.ts'
import { createReconcileStore } from '../../../control-plane/src/reconcile/store.ts'
import { createRequestLeases } from '../../../control-plane/src/quotas/store-request-leases.ts'
import { createRolloutStore } from '../../../control-plane/src/rollouts/store.ts'
import { createTenantStore } from '../../../control-plane/src/tenants/store.ts'
import { createUsageBooks } from '../../../control-plane/src/usage/store-books.ts'
import { createUsageLedger } from '../../../control-plane/src/usage/store-ledger.ts'
import { createUsageSources } from '../../../control-plane/src/usage/store-sources.ts'
import { createTargetCheck } from '../../../control-plane/src/webhooks/webhook-target.ts'
import { createWebhookStore } from '../../../control-plane/src/webhooks/store.ts'
import { control } from '../../../control-plane/src/reconcile/controller.ts'
import { noFailpoints } from '../../../control-plane/src/reconcile/failpoints.ts'
import type { ReconcileStore } from '../../../control-plane/src/reconcile/reconcile-store.ts'
import { createRegionConditions } from '../../../control-plane/src/reconcile/region-conditions.ts'
import type { RegionProbe } from '../../../control-plane/src/reconcile/region-probe.ts'
import { createRegion, type Region } from '../../../control-plane/src/reconcile/region.ts'
import type { RegionConfig } from '../../../control-plane/src/regions/region-config.ts'
import { createStoredReader } from '../../../control-plane/src/health/stored-reader.ts'
import { createUsageReader } from '../../../control-plane/src/usage/read-usage.ts'
import { startPostgres, type TestPostgres } from '../postgres.ts'
import { cloudConfig, cloudRegion } from './cloud-region.ts'
import { StandInEngine } from './stand-in-engine.ts'

export const internalToken = 'the-internal-token-of-this-test'

/** The names that a test's control plane can resolve. */
const testNames: Record<string, string[]> = { 'public.test': ['93.184.215.14'], 'private.test': ['93.184.215.14', '10.0.0.5'] }
const homeMigrations = new URL('../../../tenant-runtime/migrations/', import.meta.url).pathname

export interface Answer {
  status: number
  headers: Record<string, unknown>
  /** What the body is as JSON; undefined when it is none. */
  body: unknown
  text: string
}

export interface Asked {
  /** Text of a platform key, or null for none; the admin key when absent. */
  key?: string | null
  body?: unknown
  /** A body that is sent as it is. */
  payload?: string
  headers?: Record<string, string>
}

export type CreatedTenant = TenantBody & {
  keys: { publishable_key: string; secret_key: string; jwt_secret: string }
  operation: OperationBody
}

export interface RouteSeen {
  method: string
  url: string
}

export interface TestController {
  /** Epochs under which it led, oldest first. */
  readonly epochs: bigint[]
  stop(): Promise<void>
}

export interface TestApi {
  app: Awaited<ReturnType<typeof buildApp>>
  postgres: TestPostgres
  controlUrl: string
  /** Live keys, one a scope. */
  keys: Record<Scope, string>
  region: StandInRegion
  /** Of the region `cloud`. */
  engine: StandInEngine
  published: PublishedSource
  hub: WatchHub
  reconcileStore: ReconcileStore
  billing: BillingParts
  /** Of its secrets. */
  seal: Seal
  /** Milliseconds that the control plane's clock is ahead of the machine's, and for which the API waits at most for anything. */
  clock: { ahead: number; patience: number }
  /** Every line that the control plane has logged. */
  log: string[]
  /** Routes with a method each, but for the documentation's. */
  routes: RouteSeen[]
  call(method: string, path: string, asked?: Asked): Promise<Answer>
  /** Creates a tenant and waits until it is ready. */
  create(name?: string, more?: Record<string, string>): Promise<CreatedTenant>
  tenant(id: string): Promise<TenantBody>
  newKey(scope: Scope): Promise<{ id: string; key: string }>
  /** Rows of the control database. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Rows of each table of the control database: equal before and after means that nothing was made. */
  counts(): Promise<Record<string, number>>
  startController(): TestController
}

/** Runtime and gateway of the region in one: what is published, they show. */
export class StandInRegion implements RegionProbe {
  /** False: neither answers. */
  agrees = true
  /** Tenants whose files were removed. */
  readonly removed: string[] = []
  readonly #source: PublishedSource

  constructor(source: PublishedSource) {
    this.#source = source
  }

  async tenantHealth(_url: string, tenantId: string): Promise<TenantHealth | undefined> {
    const manifest = (await this.#published(tenantId))?.manifest
    if (manifest === undefined) return undefined
    const component = { status: 'healthy' as const, observed_at: new Date().toISOString() }
    return {
      tenant_id: tenantId, generation: manifest.generation, status: 'healthy',
      components: { database: component, storage: component, functions: component },
    }
  }

  async tenantUsage(_url: string, tenantId: string) {
    const manifest = (await this.#published(tenantId))?.manifest
    return manifest === undefined ? undefined : { tenant_id: tenantId, file_bytes: 7, file_count: 1, document_bytes: 11, function_invocations: 0 }
  }

  async route(_url: string, tenantId: string) {
    return (await this.#published(tenantId))?.route
  }

  activity() {
    return Promise.resolve({ since: new Date(0).toISOString(), tenants: {} })
  }

  async removeData(_url: string, tenantId: string) {
    await this.#published(tenantId)
    this.removed.push(tenantId)
  }

  async #published(tenantId: string): Promise<Published | undefined> {
    if (!this.agrees) throw new Error('the region does not answer')
    return (await this.#source.some(new Set([tenantId])))[0]
  }
}

export interface TestApiOptions {
  deleteGraceSeconds?: number
  control?: boolean
  /** There is a region `cloud` beside the region `local`. */
  cloud?: boolean
  prices?: BillingConfig
  /** Where backups are kept; without it none are. */
  kept?: (seal: Seal) => BackupRoutesDeps['backups']['kept']
}

/** Everything ends with the test. */
export async function startApi(t: Test, options: TestApiOptions = {}): Promise<TestApi> {
  const postgres = await startPostgres()
  const controlUrl = postgres.url('control')
  await migrate(controlUrl, await readMigrations())

  const clock = { ahead: 0, patience: Infinity }
  const now = () => new Date(Date.now() + clock.ahead)
  const testClock = { ...systemClock, now }
  const apiClock = {
    ...testClock,
    timeout: (milliseconds: number) => AbortSignal.timeout(Math.min(milliseconds, clock.patience)),
    every: (milliseconds: number, work: () => void) => systemClock.every(Math.min(milliseconds, clock.patience), work),
  }
  const log: string[] = []
  const logger = pino({ level: 'debug', base: null }, { write: (line: string) => log.push(line) })
  const problem = (error: Error) => logger.warn({ err: error }, error.message)
  const config: RegionConfig = {
    id: 'local', engine: 'process', domain: 'localhost', gateway_url: 'http://127.0.0.1:4401', postgres_url: postgres.url('postgres'),
    runtime_urls: ['http://runtime.invalid'], gateway_internal_urls: ['http://gateway.invalid'], database_host: new URL(postgres.url('postgres')).host,
    docker: undefined, superuserPassword: '',
  }
  const seal = createSeal(randomBytes(32))
  const database = openDatabase(controlUrl)
  const configs = options.cloud === true ? [config, cloudConfig] : [config]
  await recordRegions(database, configs)
  const keyStore = createPlatformKeyStore({ database, seal, now })
  const plans = createPlanStore(database)
  const ledger = createUsageLedger(database, now)
  const published = createPublishedSource(database, seal, configs, 100_000_000, now)
  const region = new StandInRegion(published)
  const reconcileStore = createReconcileStore(database, seal, now)
  const migrations = await loadHomeMigrations(homeMigrations)
  const homes = new HomeDatabases(config.postgres_url, migrations)
  const engine = new StandInEngine()
  const regions = new Map<string, Region>([[config.id, createRegion({ config, engine: undefined, homes, migrations, internalToken, clock: testClock })]])
  if (options.cloud === true) regions.set(cloudConfig.id, cloudRegion({ engine, homes, internalToken, clock: testClock }))
  const sight = { regions, store: reconcileStore, clock: apiClock }
  const tenants = createTenantStore({ database, seal, now })
  const hub = new WatchHub(published, problem)
  const billing = openBilling(database, options.prices, seal, now)
  const conditions = createRegionConditions({ now })
  const metrics = createMetrics(conditions, now)

  const feeds = new AbortController()
  const loops: Promise<void>[] = []
  const startFeed = () => {
    const feed = new ChangeFeed({ url: controlUrl, database, onProblem: problem })
    loops.push(feed.run(feeds.signal))
    return feed
  }
  const changes = startFeed()
  changes.subscribe(hub.onChange)

  const { routes, plugin } = routeCollector(async (instance) => {
    await instance.register(internalRoutes({ hub, ledger, tenants, now: () => new Date() }))
    await instance.register(leaseRoutes(measuredLeases(createRequestLeases(database, now), metrics.metering.leases)))
  })
  const app = await buildApp({
    regions: configs,
    tenants,
    plans,
    answers: createKeptAnswers({ database, seal, now }),
    keys: keyStore,
    audit: createAuditLog(database),
    backups: { store: createBackupStore({ database, seal, now }), kept: options.kept?.(seal) },
    rollouts: createRolloutStore({ database, seal, now }),
    usageSources: createUsageSources({ database, seal, now }),
    usage: createUsageReader({ ...sight, books: createUsageBooks(database), tenants, plans, history: billing.history, probe: region }),
    stored: createStoredReader({ ...sight, probe: region }),
    webhooks: createWebhookStore({ database, seal, now }),
    forbiddenAddress: createTargetCheck({ reachable: readNetworks(['10.20.0.0/16']), resolve: async (name) => testNames[name] ?? Promise.reject(new Error('no such name')) }),
    billing: billing.billing,
    invoices: billing.invoices,
    adjustments: billing.adjustments,
    history: billing.history,
    pdfFonts: loadPdfFonts,
    health: createHealthReader({ ...sight, probe: region }),
    drift: createDriftReader(sight),
    regionCondition: (id) => conditions.of(id),
    engineOf: (id) => regions.get(id)?.engine,
    changes,
    ping: () => database.$queryRaw`select 1`.then(() => true, () => false),
    now,
    clock: apiClock,
    deleteGraceSeconds: options.deleteGraceSeconds ?? 3600,
    internalToken,
    logger,
    internal: plugin,
    metrics,
  })
  await app.ready()

  const controllers = new Set<TestController>()
  const startController = (): TestController => {
    const stopping = new AbortController()
    const feed = startFeed()
    const epochs: bigint[] = []
    const ended = lead(
      { url: controlUrl, onProblem: problem },
      (leadership) => {
        epochs.push(leadership.epoch)
        return control(
          {
            store: reconcileStore, regions, homeVersion: migrationsFingerprint(migrations), conditions,
            probe: region, changes: feed, failpoint: noFailpoints, clock: testClock, random: Math.random, log: logger, sweepMilliseconds: 200,
            measure: metrics.controller, orphanGraceSeconds: 0, housekeeping: [],
          },
          leadership,
        )
      },
      stopping.signal,
    )
    const controller = {
      epochs,
      async stop() {
        controllers.delete(controller)
        stopping.abort()
        await ended
      },
    }
    controllers.add(controller)
    return controller
  }
  if (options.control !== false) startController()

  const sql = new pg.Pool({ connectionString: controlUrl, max: 2 })
  // The server ends before the pool in a test that crashes it.
  sql.on('error', () => undefined)
  t.teardown(async () => {
    region.agrees = true
    await Promise.all([...controllers].map((controller) => controller.stop()))
    feeds.abort()
    await Promise.all(loops)
    await app.close()
    await homes.close()
    await database.$disconnect()
    await sql.end()
    await postgres.stop()
  })

  const firstKey = newPlatformKey()
  await keyStore.createFirst(firstKey)
  const api: TestApi = {
    app, postgres, controlUrl, region, engine, published, hub, reconcileStore, billing, seal, clock, log, routes, startController,
    keys: { admin: firstKey, read: '', billing: '' },
    async call(method, path, { key = api.keys.admin, body, payload, headers = {} } = {}) {
      const sent = payload ?? (body === undefined ? undefined : JSON.stringify(body))
      const response = await app.inject({
        method,
        url: path,
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(sent === undefined ? {} : { payload: sent }),
      })
      return { status: response.statusCode, headers: response.headers, body: parsed(response.payload), text: response.payload }
    },
    async create(name = newName(), more = {}) {
      const answer = await api.call('POST', '/v1/tenants', { body: { name, plan: 'Free', region: 'local', ...more }, headers: { prefer: 'wait=30' } })
      if (answer.status !== 201) throw new Error(`creating ${name} was answered ${answer.status}: ${answer.text}`)
      return answer.body as CreatedTenant
    },
    async tenant(id) {
      const answer = await api.call('GET', `/v1/tenants/${id}`)
      if (answer.status !== 200) throw new Error(`reading ${id} was answered ${answer.status}: ${answer.text}`)
      return answer.body as TenantBody
    },
    async newKey(scope) {
      const answer = await api.call('POST', '/v1/keys', { body: { name: `${scope} key`, scope } })
      if (answer.status !== 201) throw new Error(`creating a key was answered ${answer.status}: ${answer.text}`)
      return answer.body as { id: string; key: string }
    },
    async sql(text, values = []) {
      return (await sql.query<Record<string, unknown>>(text, values)).rows
    },
    async counts() {
      // The controller writes changes by itself, and old ones are removed.
      const tables = await api.sql("select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'changes' order by relname")
      const counted = tables.map(({ relname }) => `select '${String(relname)}' as name, count(*)::int as count from "${String(relname)}"`)
      const rows = await api.sql(counted.join(' union all '))
      return Object.fromEntries(rows.map(({ name, count }) => [String(name), Number(count)]))
    },
  }
  api.keys.read = (await api.newKey('read')).key
  api.keys.billing = (await api.newKey('billing')).key
  return api
}

/** Runs in the application's own context, so that it sees every route added from then on. */
function routeCollector(inner: FastifyPluginAsync): { routes: RouteSeen[]; plugin: FastifyPluginAsync } {
  const routes: RouteSeen[] = []
  const plugin: FastifyPluginAsync = async (app) => {
    app.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) routes.push({ method: one, url })
    })
    await app.register(inner)
  }
  return { routes, plugin: Object.assign(plugin, { [Symbol.for('skip-override')]: true }) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A tenant's name that no other test has. */
export function newName(prefix = 'tenant'): string {
  return `${prefix}-${randomUUID().slice(0, 13)}`
}

/** The answer is an error in the one form, with this code; `names` stands in its message. */
export function isError(t: Test, answer: Answer, status: number, code: string, names: string, what: string): void {
  const body = answer.body as ErrorBody
  t.match({ status: answer.status, body }, { status, body: { statusCode: String(status), error: /^[a-z_]+$/, code, message: String } }, what)
  t.ok(body.message.includes(names), `${what}: "${body.message}" names ${names}`)
}
