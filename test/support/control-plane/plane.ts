// The control database of a region on a Docker Engine, for tests of housekeeping: the real stores, tenants that the test
// inserts, and a function that settles requested changes in place of the reconciler.
import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'
import { createSeal, type Seal } from '#control-plane/platform/seal.ts'
import { openDatabase, type Database } from '#control-plane/platform/database.ts'
import { createPauseStore, type PauseStore } from '#control-plane/pause/store.ts'
import { createRunningTenants, type RunningTenants } from '#control-plane/tenants/store-running.ts'
import { createWarmPoolStore, type WarmPoolStore } from '#control-plane/warm-pool/store.ts'
import { migrate, readMigrations } from '#control-plane/platform/migrations.ts'
import { recordRegions } from '#control-plane/plans/store.ts'
import type { DockerSettings } from '#control-plane/stacks/container-settings.ts'
import { readRegions, type RegionConfig } from '#control-plane/regions/region-config.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { newSecrets } from '#control-plane/tenants/new-secrets.ts'
import { startPostgres } from '../postgres.ts'
import { stoppedClock, type StoppedClock } from './clock.ts'

export const oldImages = { postgres: 'sha256:postgres-old', runtime: 'sha256:runtime-old' }

export interface Plane {
  /** The superuser's URL of the control database. */
  url: string
  database: Database
  seal: Seal
  clock: StoppedClock
  store: PauseStore & RunningTenants & WarmPoolStore
  /** Epoch under which the stores write. */
  epoch: bigint
  region(settings?: Partial<DockerSettings>): RegionConfig
  log: { info(details: object, message: string): void; warn(details: object, message: string): void }
  /** Warnings that were logged. */
  warnings: { details: object; message: string }[]
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Inserts a tenant with its own stack; `columns` replace the defaults, with which the tenant is ready. @returns its ID */
  addTenant(columns?: Record<string, unknown>): Promise<string>
  tenant(id: string): Promise<Record<string, unknown>>
  /** Changes columns as a request of an operator does: increments the generation and opens an operation. */
  request(id: string, kind: string, columns: Record<string, unknown>): Promise<void>
  /** Moves every tenant to its desired state. Tenants with the image `badImage` fail. */
  settle(badImage?: string): Promise<void>
  /** Switches to a new, empty region in the same database. */
  nextRegion(): Promise<void>
  changeLeader(): Promise<void>
  /** Ends the control database as a crash does, and starts it again. */
  crash(): Promise<void>
}

/** Starts a Postgres with the migrated control database, whose secrets the key seals. It stops when the test ends. */
export async function startPlane(t: Test, masterKey = randomBytes(32)): Promise<Plane> {
  const postgres = await startPostgres()
  const url = postgres.url('control')
  await migrate(url, await readMigrations())
  const database = openDatabase(url)
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  // The server may end before the pool.
  pool.on('error', () => undefined)
  t.teardown(async () => {
    await database.$disconnect()
    await pool.end()
    await postgres.stop()
  })
  const clock = stoppedClock()
  const seal = createSeal(masterKey)
  let regionId = 'region-0'
  let regions = 0

  const plane: Plane = {
    url,
    database,
    seal,
    clock,
    store: {
      ...createRunningTenants(database),
      ...createPauseStore(database, clock.now),
      ...createWarmPoolStore(database, seal, clock.now),
    },
    epoch: 0n,
    warnings: [],
    log: { info: () => undefined, warn: (details, message) => void plane.warnings.push({ details, message }) },
    region: (settings = {}) => dockerRegion(regionId, settings),
    sql: async (text, values = []) => (await pool.query<Record<string, unknown>>(text, values)).rows,

    async addTenant(columns = {}) {
      const id = `t_${randomBytes(10).toString('hex')}`
      const row = {
        id,
        name: `tenant-${id.slice(2)}`,
        plan_id: 'Pro',
        region_id: regionId,
        isolation: 'database-per-tenant',
        status: 'ready',
        observed_generation: 1,
        route_phase: 'ready',
        home_version: 'home',
        postgres_image: oldImages.postgres,
        runtime_image: oldImages.runtime,
        created_at: clock.now(),
        updated_at: clock.now(),
        ...columns,
      }
      const names = Object.keys(row)
      await plane.sql(
        `insert into tenants (${names.join(', ')}) values (${names.map((_, at) => `$${at + 1}`).join(', ')})`,
        Object.values(row),
      )
      for (const [kind, text] of Object.entries(newSecrets())) {
        await plane.sql('insert into tenant_secrets (id, tenant_id, kind, sealed) values ($1, $2, $3, $4)', [
          randomUUID(),
          id,
          kind,
          Buffer.from(seal.seal(text, `${id}:${kind}`)),
        ])
      }
      // The next tenant must be younger.
      clock.pass(0.001)
      return id
    },

    async tenant(id) {
      const [row] = await plane.sql('select * from tenants where id = $1', [id])
      if (row === undefined) throw new Error(`there is no ${id}`)
      return row
    },

    async request(id, kind, columns) {
      const names = Object.keys(columns)
      const sets = names.map((name, at) => `${name} = $${at + 3}, `).join('')
      await plane.sql(`update tenants set ${sets} generation = generation + 1, updated_at = $2 where id = $1`, [
        id,
        clock.now(),
        ...Object.values(columns),
      ])
      await plane.sql(
        "update operations set state = 'superseded' where tenant_id = $1 and state in ('pending', 'running')",
        [id],
      )
      await plane.sql(
        'insert into operations (id, tenant_id, kind, generation, created_at) select $1, id, $2, generation, $4 from tenants where id = $3',
        [randomUUID(), kind, id, clock.now()],
      )
    },

    async settle(badImage = 'none') {
      await plane.sql("delete from tenants where desired = 'deleted'")
      await plane.sql(
        `update tenants set status = 'failed', reason = 'the runtime does not respond'
         where observed_generation < generation and desired in ('active', 'warm') and $1 in (runtime_image, postgres_image)`,
        [badImage],
      )
      const settled = `observed_generation < generation and not (
        desired in ('active', 'warm') and $1 in (coalesce(runtime_image, ''), coalesce(postgres_image, '')))`
      await plane.sql(
        `update operations set state = 'succeeded'
          where state in ('pending', 'running') and tenant_id in (select id from tenants where ${settled})`,
        [badImage],
      )
      await plane.sql(
        `update tenants set observed_generation = generation, reason = null, updated_at = $2,
           status = case desired when 'active' then 'ready' else desired end,
           postgres_image = coalesce(postgres_image, $3), runtime_image = coalesce(runtime_image, $4)
         where ${settled}`,
        [badImage, clock.now(), oldImages.postgres, oldImages.runtime],
      )
    },

    async nextRegion() {
      regionId = `region-${++regions}`
      await recordRegions(database, [plane.region()])
    },

    async changeLeader() {
      await plane.sql('update installation set epoch = epoch + 1')
    },

    crash: () => postgres.crash(),
  }
  await recordRegions(database, [plane.region()])
  return plane
}

function dockerRegion(id: string, settings: Partial<DockerSettings>): RegionConfig {
  const docker: DockerSettings = {
    host: 'unix:///nowhere.sock',
    network_range: '10.70.0.0/20',
    control_url: 'http://10.70.0.1:4400',
    images: { postgres: 'tenantry/postgres', runtime: 'tenantry/tenant-runtime', gateway: 'tenantry/gateway' },
    gateway: { host_address: '127.0.0.1', port: 4401, postgres_port: 4403 },
    ...settings,
  }
  const [region] = readRegions(
    JSON.stringify([{ id, engine: 'docker', domain: 'localhost', gateway_url: 'http://127.0.0.1:4401', docker }]),
    Buffer.alloc(32, 7),
  )
  if (region === undefined) throw new Error('there is no region')
  return region
}

/** Reports whether a write was rejected because another control plane leads. */
export async function isRejected(write: Promise<unknown>): Promise<boolean> {
  return write.then(
    () => false,
    (error: unknown) => error instanceof LeadershipLost,
  )
}
