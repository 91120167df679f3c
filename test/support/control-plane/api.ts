// Runs the control plane in this process: its API on a real Postgres and its controller. A fake replaces the region's
// runtime and gateway. It applies what the control plane publishes at once, unless the test makes it fail.
import { randomBytes, randomUUID } from 'node:crypto'
import { readNetworks, type ErrorBody, type TenantHealth } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import pino from 'pino'
import type { Test } from 'tap'
import type { TargetConfig } from '#control-plane/backups/index.ts'
import type { BillingConfig, BillingParts } from '#control-plane/billing/index.ts'
import type { Config } from '#control-plane/config.ts'
import { openControlPlane, type Probe } from '#control-plane/control-plane.ts'
import { newPlatformKey } from '#control-plane/keys/key-text.ts'
import type { Scope } from '#control-plane/keys/platform-key.ts'
import { systemClock, type Clock } from '#control-plane/platform/clock.ts'
import type { RecordWrite } from '#control-plane/platform/recorded-write.ts'
import type { Seal } from '#control-plane/platform/seal.ts'
import { defaultHomeLimits, defaultRateLimits } from '#control-plane/quotas/index.ts'
import { noFailpoints, type Failpoint } from '#control-plane/reconcile/failpoints.ts'
import { createRegion, type ReconcileStore } from '#control-plane/reconcile/index.ts'
import { defaultSessionLimits, type SessionLimitsConfig } from '#control-plane/sessions/index.ts'
import type { RegionConfig } from '#control-plane/regions/index.ts'
import type { OperationBody, TenantBody } from '#control-plane/tenants/index.ts'
import type { Published, PublishedSource } from '#control-plane/watch/watches.ts'
import { startPostgres, type TestPostgres } from '../postgres.ts'
import { cloudConfig, cloudConfigOf, cloudRegion, type CloudOption } from './cloud-region.ts'
import { FakeEngine } from './fake-engine.ts'

export const internalToken = 'the-internal-token-of-this-test'

/** The names that a test's control plane can resolve. */
const testNames: Record<string, string[]> = {
  'public.test': ['93.184.215.14'],
  'private.test': ['93.184.215.14', '10.0.0.5'],
}
const homeMigrations = new URL('../../../tenant-runtime/migrations/', import.meta.url).pathname

export interface ApiResponse {
  status: number
  headers: Record<string, unknown>
  /** The body, parsed as JSON; undefined when it is not JSON. */
  body: unknown
  text: string
}

export interface CallOptions {
  /** Text of a platform key, or null for a request without one. The default is the admin key. */
  key?: string | null
  body?: unknown
  /** A body that is sent unchanged, in place of `body`. */
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
  /** Epochs under which this controller led, oldest first. */
  readonly epochs: bigint[]
  stop(): Promise<void>
}

export interface TestApi {
  app: FastifyInstance
  postgres: TestPostgres
  controlUrl: string
  /** Live platform keys, one for each scope. */
  keys: Record<Scope, string>
  region: FakeRegion
  /** The engine of the region `cloud`. */
  engine: FakeEngine
  published: PublishedSource
  reconcileStore: ReconcileStore
  record: RecordWrite
  billing: BillingParts
  /** Seals the control plane's secrets. */
  seal: Seal
  /** Milliseconds: by how much its clock is ahead, the maximum of all its timeouts, and of all that it does once, later. */
  clock: { ahead: number; timeout: number; later: number }
  /** All lines that the control plane has logged. */
  log: string[]
  /** All routes, one entry for each method, except those of the documentation. */
  routes: RouteSeen[]
  call(method: string, path: string, options?: CallOptions): Promise<ApiResponse>
  /** Creates a tenant and waits until it is ready. */
  create(name?: string, more?: Record<string, string>): Promise<CreatedTenant>
  tenant(id: string): Promise<TenantBody>
  newKey(scope: Scope): Promise<{ id: string; key: string }>
  /** Runs a statement in the control database. @returns its rows */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Counts the rows of each table of the control database. Equal counts before and after show that a call added no row. */
  counts(): Promise<Record<string, number>>
  startController(): TestController
}

/** A fake of the region's runtime and gateway. Both report the published state. */
export class FakeRegion implements Probe {
  /** False makes every call to the runtime and the gateway fail. */
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
      tenant_id: tenantId,
      generation: manifest.generation,
      status: 'healthy',
      components: { database: component, storage: component, functions: component },
    }
  }

  async tenantUsage(_url: string, tenantId: string) {
    const manifest = (await this.#published(tenantId))?.manifest
    return manifest === undefined
      ? undefined
      : { tenant_id: tenantId, file_bytes: 7, file_count: 1, document_bytes: 11, function_invocations: 0 }
  }

  async route(_url: string, tenantId: string) {
    return (await this.#published(tenantId))?.route
  }

  activity() {
    return Promise.resolve({ since: new Date(0).toISOString(), tenants: {} })
  }

  tenantRecords() {
    return Promise.resolve(undefined)
  }

  storageState() {
    return Promise.resolve(undefined)
  }

  tenantStorageState() {
    return Promise.resolve(undefined)
  }

  async removeData(_url: string, tenantId: string) {
    await this.#published(tenantId)
    this.removed.push(tenantId)
  }

  async #published(tenantId: string): Promise<Published | undefined> {
    if (!this.agrees) throw new Error('the region does not respond')
    return (await this.#source.some(new Set([tenantId])))[0]
  }
}

export interface TestApiOptions {
  deleteGraceSeconds?: number
  control?: boolean
  /** Whether the leader's jobs other than reconciliation run. */
  jobs?: boolean
  failpoint?: Failpoint
  sessionLimits?: SessionLimitsConfig
  /** Adds a region `cloud` to the region `local`; with hosts, services are placed on these. */
  cloud?: CloudOption
  prices?: BillingConfig
  /** Directory of the backups, further targets, and name of the installation. Without it the control plane makes no backups. */
  backups?: { directory: string; installation: string; targets?: TargetConfig[] }
}

/** Starts the control plane with its Postgres. Both stop when the test ends. */
export async function startApi(t: Pick<Test, 'teardown'>, options: TestApiOptions = {}): Promise<TestApi> {
  const postgres = await startPostgres()
  const controlUrl = postgres.url('control')
  const clock = { ahead: 0, timeout: Infinity, later: Infinity }
  const testClock: Clock = {
    ...systemClock,
    now: () => new Date(Date.now() + clock.ahead),
    timeout: (milliseconds) => AbortSignal.timeout(Math.min(milliseconds, clock.timeout)),
    later: (milliseconds, work) => systemClock.later(Math.min(milliseconds, clock.later), work),
    every: (milliseconds, work) => systemClock.every(Math.min(milliseconds, clock.timeout), work),
  }
  const log: string[] = []
  const routes: RouteSeen[] = []
  const [engine, { cloud }] = [new FakeEngine(), options]
  let region: FakeRegion | undefined
  const plane = await openControlPlane(configOf(postgres, options), {
    clock: testClock,
    random: Math.random,
    log: pino({ level: 'debug', base: null }, { write: (line: string) => log.push(line) }),
    failpoint: options.failpoint ?? noFailpoints,
    fetch,
    resolve: async (name) => testNames[name] ?? Promise.reject(new Error('no such name')),
    probe: (published) => (region = new FakeRegion(published)),
    openRegion: (given) =>
      given.config.id === cloudConfig.id ? cloudRegion({ ...given, engine, cloud }) : createRegion(given),
    onRoute: (route) => routes.push(route),
  })
  const { app } = plane
  if (region === undefined) throw new Error('the control plane opened no probe')
  const fake: FakeRegion = region
  await app.ready()

  const over = new AbortController()
  const following = plane.follow(over.signal)
  const controllers = new Set<TestController>()
  const startController = (): TestController => {
    const stopping = new AbortController()
    const epochs: bigint[] = []
    const ended = plane.lead(stopping.signal, {
      onLead: ({ epoch }) => epochs.push(epoch),
      sweepMilliseconds: 200,
      hasJobs: options.jobs ?? false,
    })
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
  // A test may crash the server while the pool is open.
  sql.on('error', () => undefined)
  t.teardown(async () => {
    fake.agrees = true
    await Promise.all([...controllers].map((controller) => controller.stop()))
    over.abort()
    await following
    await plane.close()
    await sql.end()
    await postgres.stop()
  })

  const firstKey = newPlatformKey()
  await plane.record({ keyId: 'system' }, (write) => plane.keys.createFirst(firstKey, async () => undefined, write))
  const api: TestApi = {
    app,
    postgres,
    controlUrl,
    region: fake,
    engine,
    clock,
    log,
    routes,
    startController,
    published: plane.published,
    reconcileStore: plane.reconcileStore,
    record: plane.record,
    billing: plane.billing,
    seal: plane.seal,
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
      return {
        status: response.statusCode,
        headers: response.headers,
        body: parsed(response.payload),
        text: response.payload,
      }
    },
    async create(name = newName(), more = {}) {
      const response = await api.call('POST', '/v1/tenants', {
        body: { name, plan: 'Free', region: 'local', ...more },
        headers: { prefer: 'wait=30' },
      })
      if (response.status !== 201) throw new Error(`creating ${name} failed with ${response.status}: ${response.text}`)
      return response.body as CreatedTenant
    },
    async tenant(id) {
      const response = await api.call('GET', `/v1/tenants/${id}`)
      if (response.status !== 200) throw new Error(`reading ${id} failed with ${response.status}: ${response.text}`)
      return response.body as TenantBody
    },
    async newKey(scope) {
      const response = await api.call('POST', '/v1/keys', { body: { name: `${scope} key`, scope } })
      if (response.status !== 201) throw new Error(`creating a key failed with ${response.status}: ${response.text}`)
      return response.body as { id: string; key: string }
    },
    async sql(text, values = []) {
      return (await sql.query<Record<string, unknown>>(text, values)).rows
    },
    async counts() {
      // The controller adds rows to "changes" by itself, and retention removes old ones.
      const tables = await api.sql(
        `select relname from pg_class
          where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'changes' order by relname`,
      )
      const selects = tables.map(
        ({ relname }) => `select '${String(relname)}' as name, count(*)::int as count from "${String(relname)}"`,
      )
      const rows = await api.sql(selects.join(' union all '))
      return Object.fromEntries(rows.map(({ name, count }) => [String(name), Number(count)]))
    },
  }
  for (const scope of ['read', 'billing'] as const) api.keys[scope] = (await api.newKey(scope)).key
  return api
}

function configOf(
  postgres: TestPostgres,
  { cloud, deleteGraceSeconds = 3600, prices, backups, sessionLimits = defaultSessionLimits }: TestApiOptions,
): Config {
  const local: RegionConfig = {
    id: 'local',
    engine: 'process',
    domain: 'localhost',
    gateway_url: 'http://127.0.0.1:4401',
    postgres_url: postgres.url('postgres'),
    runtime_urls: ['http://runtime.invalid'],
    gateway_internal_urls: ['http://gateway.invalid'],
    database_host: new URL(postgres.url('postgres')).host,
    docker: undefined,
    superuserPassword: '',
  }
  return {
    host: '127.0.0.1',
    port: 0,
    logLevel: 'debug',
    failpoints: '',
    maxObjects: 2_000,
    ...{ moveHoldMilliseconds: 3_000, moveReverseSeconds: 0 },
    moveBytesPerSecond: 60_000_000,
    backupBytesPerSecond: 100_000_000,
    platformKeyFile: undefined,
    controlDatabaseUrl: postgres.url('control'),
    consoleFiles: homeMigrations.replace('tenant-runtime/migrations', 'console/built'),
    homeMigrations,
    masterKeys: [randomBytes(32)],
    internalToken,
    installation: backups?.installation,
    backups: backups?.directory,
    backupTargets: backups?.targets ?? [],
    ...{ dumpMinutes: 0, proofDays: 7 },
    regions: cloud === undefined ? [local] : [local, cloudConfigOf(cloud)],
    deleteGraceSeconds,
    orphanGraceSeconds: 0,
    maxUploadBytes: 100_000_000,
    homeLimits: defaultHomeLimits,
    ...{ operationDays: 365, auditDays: 365 },
    rateLimits: defaultRateLimits,
    sessionLimits,
    trustedProxies: readNetworks(['127.0.0.1']),
    webhooksMayReach: readNetworks(['10.20.0.0/16']),
    billing: prices,
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns a tenant name that no other test uses. */
export function newName(prefix = 'tenant'): string {
  return `${prefix}-${randomUUID().slice(0, 13)}`
}

/** Asserts that the response is an error in the platform's format, with this status and code, and that its message contains `names`. */
export function isError(
  t: Test,
  response: ApiResponse,
  status: number,
  code: string,
  names: string,
  what: string,
): void {
  const body = response.body as ErrorBody
  const error = { statusCode: String(status), error: /^[a-z_]+$/, code, message: String }
  t.match(response, { status, body: error }, what)
  t.ok(body.message.includes(names), `${what}: "${body.message}" names ${names}`)
}
