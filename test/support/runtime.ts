// Starts the real runtime in this process, with real Postgres homes and real files. Each tenant has an HTTP proxy that sets
// the internal headers as the gateway does, so that tests can use unmodified clients.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type SupabaseClient } from '@supabase/supabase-js'
import { readNetworks, type ApiKey, type Limits, type TenantManifest } from '@tenantry/contract'
import pino from 'pino'
import type { Test } from 'tap'
import type { BoundsLimits } from '#tenant-runtime/bounds/index.ts'
import type { ConnectionLimits, Connections } from '#tenant-runtime/database/connections.ts'
import type { Replicas } from '#tenant-runtime/database/replicas/replicas.ts'
import type { BodyPace } from '#tenant-runtime/http/body-reader.ts'
import { developerConsole, type Config } from '#tenant-runtime/config.ts'
import { openRuntime } from '#tenant-runtime/runtime.ts'
import type { PoolLimits } from '#tenant-runtime/functions/executor/pool.ts'
import { eventBounds, trimEvents, type EventBounds } from '#tenant-runtime/events/event-retention.ts'
import type { Pace } from '#tenant-runtime/events/follow-events.ts'
import type { DispatchPace } from '#tenant-runtime/functions/triggers/dispatch.ts'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import type { StorageFailpoint } from '#tenant-runtime/storage/failpoints.ts'
import type { StorageModule } from '#tenant-runtime/storage/storage-module.ts'
import { defaultStorageLimits, type StorageLimits } from '#tenant-runtime/storage/storage-limits.ts'
import type { Tenant } from '#tenant-runtime/tenancy/tenant.ts'
import { CountingDatabase } from './counting-database.ts'
import { createHome, type TestHome } from './home.ts'
import { query, startPostgres, type TestPostgres } from './postgres.ts'
import type { PostgresCluster } from './postgres-cluster.ts'
import { send, type ApiResponse, type RequestOptions } from './send-request.ts'
import { signToken } from './sign-token.ts'
import { internalToken, openProxy } from './tenant-proxy.ts'

export { send, signToken, type ApiResponse, type RequestOptions }

/** Limits that no test reaches, so that a test sets only the limit that it is about. */
export const roomy: Limits = {
  file_bytes: null,
  document_bytes: null,
  max_upload_bytes: 100_000_000,
  requests_per_month: null,
  connections: null,
}

type AnyRow = Record<string, unknown>

/** Schema for the client's types that allows any collection with any fields. */
interface AnyDatabase {
  public: {
    Tables: Record<string, { Row: AnyRow; Insert: AnyRow; Update: AnyRow; Relationships: [] }>
    Views: Record<string, { Row: AnyRow; Relationships: [] }>
    Functions: Record<string, { Args: AnyRow; Returns: unknown }>
  }
}

export interface TestTenant {
  readonly id: string
  readonly home: TestHome
  /** Base URL that the tenant's developers use. */
  readonly url: string
  readonly port: number
  readonly secretKey: string
  readonly publishableKey: string
  readonly manifest: TenantManifest
  /** Returns the number of statements that have reached the database. */
  statements(): number
  /** Returns the texts of the statements that have reached the database. */
  statementTexts(): ReadonlySet<string>
  /** Changes the manifest, as a new generation from the control plane does. */
  change(manifest: Partial<TenantManifest>): void
  /** Removes the tenant from the runtime, as after its deletion. */
  remove(): void
  /** Runs a statement as the database's superuser. @returns its rows */
  rows(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Returns the names of all files that the tenant has in the store, complete or incomplete. */
  files(): Promise<string[]>
  /** Returns a JWT of a signed-in user. */
  token(sub: string, claims?: Record<string, unknown>): string
  /** Returns the headers of a caller: a user's ID, `service`, or undefined for an unauthenticated caller. */
  as(caller: string | undefined): Record<string, string>
  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse>
  /** Returns an unmodified Supabase client of a caller. */
  client(caller: string | undefined): SupabaseClient<AnyDatabase>
}

export interface TestRuntime {
  postgres: TestPostgres
  connections: Connections
  replicas: Replicas
  /** The runtime's own port, which requires the internal headers. */
  port: number
  storage: StorageModule
  /** The runtime's data directory, which contains only the store, `blobs`. */
  directory: string
  /** The runtime's clock, in milliseconds since the epoch: `ahead` moves it, `stopped` fixes it at a time. */
  clock: { ahead: number; stopped: number | undefined; now(): number }
  /** Log lines of the level `logLevel` or above, and messages of errors that modules reported. */
  errors: string[]
  /** Begins the end of background work, as the stop of the process does. */
  beginStop(): void
  /** Makes the runtime check a tenant for new events and due schedules. */
  notify(tenantId: string): void
  /** Deletes old events as the hourly retention does. @returns the number of deleted events */
  trimEvents(tenantId: string, bounds: Partial<EventBounds>): Promise<number>
  addTenant(options?: { name?: string; limits?: Partial<Limits>; jwtSecrets?: string[] }): Promise<TestTenant>
}

export interface RuntimeOptions {
  /** A cluster in place of a Postgres of the runtime's own. */
  cluster?: PostgresCluster
  connections?: Partial<ConnectionLimits>
  /** Backend of the store. The default is `local` in a directory of its own. */
  backend?: BlobBackend
  failpoint?: StorageFailpoint
  /** Milliseconds after which an upload that has not ended counts as abandoned. */
  abandonedMilliseconds?: number
  storageLimits?: Partial<StorageLimits>
  /** Lowest level of the log lines that `errors` collects; the default is `error`. */
  logLevel?: 'error' | 'warn' | 'trace'
  /** Limits of the pool of executors. */
  functions?: Partial<PoolLimits>
  /** Pace of events and schedules that start functions. Without it only requests start functions. */
  dispatch?: Partial<DispatchPace>
  /** Private networks that functions may reach, in addition to public ones. `resolve` finds a host's addresses. */
  mayReach?: string[]
  egress?: Config['egress']
  resolve?: (hostname: string) => Promise<string[]>
  /** Reports whether functions can reach the internet, independently of this machine's routes; the default is true. */
  hasWayOut?: () => Promise<boolean>
  /** Pace of subscriptions to events. */
  pace?: Pace
  maxSubscribers?: number
  /** Replaces requests to the control plane. */
  requestControl?: typeof fetch
  /** Sizes of the budgets of memory, and the pace of bodies. */
  bounds?: Partial<BoundsLimits>
  bodyPace?: BodyPace
  /** Settings of the REST interface. */
  rest?: Partial<Pick<Config, 'allowsRollback' | 'allowsAggregates' | 'sendsTiming'>>
  /** Whether realtime messages may be compressed. */
  compressesMessages?: boolean
}

/** Starts the runtime with its Postgres. Both stop when the test ends. */
export async function startRuntime(
  t: Test,
  {
    cluster,
    backend,
    failpoint = () => undefined,
    abandonedMilliseconds,
    storageLimits,
    functions: poolLimits = {},
    dispatch,
    connections: connectionLimits,
    rest,
    compressesMessages = false,
    bounds,
    bodyPace,
    logLevel = 'error',
    mayReach = [],
    egress,
    resolve,
    hasWayOut = async () => true,
    requestControl = () => Promise.reject(new Error('there is no control plane')),
    ...subscriptions
  }: RuntimeOptions = {},
): Promise<TestRuntime> {
  const postgres = cluster?.members[0].postgres ?? (await startPostgres())
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-runtime-'))
  const tenants = new Map<string, Tenant>()
  const errors: string[] = []
  const clock: TestRuntime['clock'] = {
    ahead: 0,
    stopped: undefined,
    now: () => clock.stopped ?? Date.now() + clock.ahead,
  }
  const config: Config = {
    host: '127.0.0.1',
    port: 0,
    controlUrl: 'http://control.invalid',
    internalToken,
    data: directory,
    logLevel,
    failpoints: '',
    storage: { backend: 'local', fallback: undefined, s3: undefined },
    limits: { ...defaultStorageLimits, ...storageLimits },
    maxConnections: 40,
    ...{ siblings: 0, siblingHosts: [], failoverSeconds: 0, consoleFiles: developerConsole },
    region: undefined,
    share: { number: 0, runtimes: 1 },
    memory: { bodyBytes: 512 * 2 ** 20, resultBytes: 512 * 2 ** 20 },
    ...{ allowsRollback: false, allowsAggregates: true, sendsTiming: false, ...rest },
    compressesMessages,
    functionsMayReach: readNetworks(mayReach),
    egress,
  }
  const runtime = await openRuntime(config, {
    log: pino({ level: logLevel, base: null }, { write: (line: string) => errors.push(line) }),
    now: clock.now,
    elapsed: clock.now,
    ...{ random: () => 0.5, newId: randomUUID },
    fetch: requestControl,
    failpoint,
    onError: (error) => errors.push(error.message),
    tenants: {
      get: (id) => tenants.get(id),
      all: () => tenants.values(),
      load: async () => undefined,
      run: async () => undefined,
    },
    ...(bounds === undefined ? {} : { bounds }),
    ...(bodyPace === undefined ? {} : { bodyPace }),
    connectionLimits: { perTenant: 10, ...connectionLimits },
    storage: abandonedMilliseconds === undefined ? {} : { abandonedMilliseconds },
    functions: {
      limits: poolLimits,
      hasWayOut,
      followPace: subscriptions.pace,
      ...(dispatch === undefined ? {} : { dispatchPace: dispatch }),
      ...(resolve === undefined ? {} : { resolve }),
    },
    events: subscriptions,
    ...(backend === undefined ? {} : { backend }),
  })
  const { app, connections, replicas, storage, functions, realtime, notify } = runtime
  await runtime.start()
  await app.listen({ host: config.host, port: config.port })
  const address = app.server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  const stops: (() => Promise<void>)[] = []
  const over = new AbortController()
  // Without `dispatch` no background work may run: some tests count statements.
  const loops = [realtime.run(over.signal), ...(dispatch === undefined ? [] : [functions.run(over.signal)])]
  t.teardown(async () => {
    over.abort()
    for (const stop of stops) await stop()
    app.server.closeAllConnections()
    await app.close()
    await Promise.all(loops)
    await runtime.close()
    if (cluster === undefined) await postgres.stop()
    await rm(directory, { recursive: true, force: true })
  })

  return {
    postgres,
    connections,
    replicas,
    port: address.port,
    storage,
    directory,
    clock,
    errors,
    beginStop: () => over.abort(),
    notify,
    async trimEvents(id, bounds) {
      const tenant = tenants.get(id)
      if (tenant === undefined) throw new Error(`there is no tenant ${id}`)
      return trimEvents(tenant, { ...eventBounds, ...bounds })
    },
    async addTenant({ name = 'acme', limits = {}, jwtSecrets = [randomBytes(32).toString('hex')] } = {}) {
      const home = await createHome(postgres)
      const secretKey = `sb_secret_${randomBytes(24).toString('base64url')}`
      const publishableKey = `sb_publishable_${randomBytes(24).toString('base64url')}`
      const routed = (url: string) => (cluster === undefined ? url : url.replace(/:\d+\//, `:${cluster.port}/`))
      const logins = {
        tenantId: home.tenantId,
        url: routed(home.url),
        ddlUrl: routed(home.ddl_url),
        ...(cluster === undefined ? {} : { members: cluster.addresses }),
      }
      const database = new CountingDatabase(connections, logins, replicas)
      let manifest: TenantManifest = {
        tenant_id: home.tenantId,
        name,
        generation: 1,
        home: { url: home.url, ddl_url: home.ddl_url, admin_url: home.adminUrl, schema: home.schema },
        keys: [apiKey('secret', secretKey), apiKey('publishable', publishableKey)],
        jwt_secrets: jwtSecrets,
        signing_secret: randomBytes(32).toString('hex'),
        limits: { ...roomy, ...limits },
      }
      const publish = () => {
        const { generation, limits } = manifest
        tenants.set(home.tenantId, { id: home.tenantId, name, generation, limits, manifest, database })
        runtime.evict(home.tenantId)
      }
      publish()
      const proxy = await openProxy(address.port, home.tenantId)
      stops.push(() => proxy.stop())
      const url = `http://127.0.0.1:${proxy.port}`
      const token = (sub: string, claims: Record<string, unknown> = {}) =>
        signToken(
          { sub, role: 'authenticated', exp: Math.floor(clock.now() / 1000) + 3600, ...claims },
          manifest.jwt_secrets[0] ?? '',
        )
      const as = (caller: string | undefined): Record<string, string> =>
        caller === undefined ? {} : { authorization: `Bearer ${caller === 'service' ? secretKey : token(caller)}` }
      return {
        id: home.tenantId,
        home,
        url,
        port: proxy.port,
        secretKey,
        publishableKey,
        get manifest() {
          return manifest
        },
        statements: () => database.statements,
        statementTexts: () => database.texts,
        change(changes) {
          manifest = { ...manifest, ...changes, generation: manifest.generation + 1 }
          publish()
        },
        remove() {
          tenants.delete(home.tenantId)
          runtime.evict(home.tenantId)
        },
        rows: (sql, values) => rowsOf(postgres, home, sql, values),
        async files() {
          const halves = (await readdir(join(directory, 'blobs/tmp'))).filter((file) => file.startsWith(home.tenantId))
          const whole = await readdir(join(directory, 'blobs', home.tenantId), {
            recursive: true,
            withFileTypes: true,
          }).catch(() => [])
          return [...halves, ...whole.filter((file) => file.isFile() && file.name !== 'store').map((file) => file.name)]
        },
        token,
        as,
        request: (method, path, { as: caller, headers = {}, body } = {}) =>
          send(proxy.port, method, path, { ...as(caller), ...headers }, body),
        client: (caller) =>
          createClient<AnyDatabase>(url, caller === 'service' ? secretKey : publishableKey, {
            auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
            ...(caller === undefined || caller === 'service' ? {} : { global: { headers: as(caller) } }),
          }),
      }
    },
  }
}

function apiKey(kind: ApiKey['kind'], text: string): ApiKey {
  return { kind, sha256: createHash('sha256').update(text).digest('hex') }
}

async function rowsOf(
  postgres: TestPostgres,
  home: TestHome,
  sql: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  // Row-level security does not apply to superusers, so the statement sees all rows.
  return query(`${postgres.url('homes')}?options=${encodeURIComponent(`-c search_path=${home.schema}`)}`, sql, values)
}
