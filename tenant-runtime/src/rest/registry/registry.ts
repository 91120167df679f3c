// The served catalog of each tenant's home, as its last reload published it, and the reload itself.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Limits } from '@tenantry/contract'
import type pg from 'pg'
import { asPublisher } from '../../database/as-publisher.ts'
import { sql, type Result, type Row } from '../../database/statement.ts'
import { RoundTripError } from '../../database/round-trip-error.ts'
import { RuntimeError } from '../../errors.ts'
import { SharedRun } from '../../shared-run.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Catalog } from './catalog.ts'
import { checkReferences, checkSchema, type WrittenSchema } from './check-schema.ts'
import type { SchemaDefinition } from './collection.ts'
import { completeTypes, hasModifiers } from './complete-types.ts'
import { readExistingTables } from './existing-tables.ts'
import { homeSizeSql, maxSchemaBytes, requireBounded, requireBoundedSchemas } from './home-bounds.ts'
import { introspection, type HomeDescription } from './introspect.ts'
import { isUnsafe, lint, lintStatement, type LintFacts, type LintViolation } from './lint.ts'
import { publish, type Published } from './publish.ts'
import type { Applied, Step } from './reload-draft.ts'
import { changedSettings, type SettingsChange } from './read-settings.ts'
import { reloadError } from './reload-error.ts'
import { planReload, type ReloadPlan } from './reload-plan.ts'
import { requireFunctions } from './require-functions.ts'
import { defaultSettings, type RestSettings } from './rest-settings.ts'
import { requireSchemasWithin, schemaSizeSql } from './schema-quota.ts'
import { systemCollections } from './system-collections.ts'
import { completeViews, type HomeAsRead } from './view-columns.ts'

interface ReloadResult {
  collections: string[]
  actions: string[]
  /** Lines that a caller can confirm in order to drop retained tables. */
  droppable: string[]
  /** Unsafe objects of the home, which are therefore not served. */
  warnings: string[]
  settings: RestSettings
}

interface RegistryOptions {
  /**
   * Milliseconds between two checks for reloads of other runtimes that serve the same tenants. Undefined when there are
   * none.
   */
  recheckMilliseconds?: number
  /** Returns milliseconds. */
  now: () => number
  /** Called within a reload, in its transaction, when the tables are complete. */
  onTables?: (client: pg.Client) => Promise<void>
  /** Reports changes that weaken the separation of callers. */
  onError?: (error: Error) => void
}

/** The catalogs of a tenant by the schemas of the interface. */
type Catalogs = ReadonlyMap<string, Catalog>

interface LoadedCatalog {
  catalogs: Catalogs
  /** The version, which changes with every reload of any runtime. */
  version: string
  /** The time before the version was read, or written. */
  checkedAt: number
}

interface ReloadRequest {
  tenant: Tenant
  confirmed: readonly string[]
  settings: SettingsChange
}

/**
 * Milliseconds for which each attempt of a reload waits for a lock. Other users of the table wait behind it, and continue
 * in the pauses between attempts. Each is shorter than Postgres' deadlock timeout (1 s), so that no request is a deadlock's
 * victim.
 */
const lockMilliseconds = [100, 200, 400, 800, 800, 800]

/** Milliseconds by which a timer may end early, compared with another clock. */
const timerMilliseconds = 10

export class Registry {
  readonly #options: RegistryOptions
  readonly #tenants = new Map<string, Promise<LoadedCatalog>>()
  readonly #reloads = new SharedRun(
    (request: ReloadRequest) => this.#inTurn(request),
    ({ tenant, confirmed, settings }) => JSON.stringify([tenant.id, confirmed, settings]),
  )
  readonly #turns = new Map<string, Promise<ReloadResult>>()

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  /** Returns the catalogs, which are read from the home on first use and change only with a reload. */
  async catalogs(tenant: Tenant): Promise<Catalogs> {
    const loading = this.#tenants.get(tenant.id)
    if (loading === undefined) return (await this.#store(tenant.id, this.#load(tenant))).catalogs
    const known = await loading
    const { recheckMilliseconds, now } = this.#options
    if (recheckMilliseconds === undefined || now() - known.checkedAt < recheckMilliseconds) return known.catalogs
    return (await this.#store(tenant.id, this.#recheck(tenant, known))).catalogs
  }

  /** Reads the catalog again if another runtime has published one. All callers wait, so that none uses an older one. */
  async #recheck(tenant: Tenant, known: LoadedCatalog): Promise<LoadedCatalog> {
    const checkedAt = this.#options.now()
    return (await readVersion(tenant)) === known.version ? { ...known, checkedAt } : this.#load(tenant)
  }

  #store(tenantId: string, loading: Promise<LoadedCatalog>): Promise<LoadedCatalog> {
    this.#tenants.set(tenantId, loading)
    // A failure must not be stored.
    loading.catch(() => this.#tenants.delete(tenantId))
    return loading
  }

  /**
   * Changes the tables according to their schemas in one transaction, and publishes the result. Callers during a reload
   * share the next one with all callers that confirm the same lines and change the same settings. It ends when all runtimes
   * of the tenant serve the result.
   * @param confirmed lines of an earlier response, for changes that lose data
   * @param settings changed settings of the interface
   * @throws RuntimeError INVALID_SCHEMA, SCHEMA_NOT_MET, DESTRUCTIVE_SCHEMA_CHANGE with the list, CONFLICT, DATABASE_BUSY;
   * then nothing has changed
   */
  async reload(
    tenant: Tenant,
    confirmed: readonly string[] = [],
    settings: SettingsChange = {},
  ): Promise<ReloadResult> {
    const result = await this.#reloads.run({ tenant, confirmed, settings })
    const { recheckMilliseconds } = this.#options
    if (recheckMilliseconds !== undefined) await pause(recheckMilliseconds + timerMilliseconds)
    return result
  }

  /** Runs one reload at a time, so that the last publication is that of the last reload. */
  #inTurn(wanted: ReloadRequest): Promise<ReloadResult> {
    const { tenant } = wanted
    const reload = () => this.#reload(wanted)
    const turn = (this.#turns.get(tenant.id) ?? Promise.resolve()).then(reload, reload)
    const over = () => {
      if (this.#turns.get(tenant.id) === turn) this.#turns.delete(tenant.id)
    }
    this.#turns.set(tenant.id, turn)
    turn.then(over, over)
    return turn
  }

  async #reload(
    request: ReloadRequest,
    [milliseconds = 0, ...further]: readonly number[] = lockMilliseconds,
  ): Promise<ReloadResult> {
    try {
      return await this.#tryReload(request, milliseconds)
    } catch (error) {
      if (!isBusy(error)) throw error
      if (further.length === 0)
        throw new RuntimeError('DATABASE_BUSY', 'A table is in use. Retry the reload.', { cause: error })
    }
    await pause(milliseconds)
    return this.#reload(request, further)
  }

  async #tryReload(
    { tenant, confirmed, settings: change }: ReloadRequest,
    lockMilliseconds: number,
  ): Promise<ReloadResult> {
    const { plan, published, violations, version, checkedAt } = await tenant.database.withOwner(async (client) => {
      await client.query("select set_config('lock_timeout', $1, true)", [`${lockMilliseconds}ms`])
      // Reloads of several runtimes wait for each other here.
      await asPublisher(client, () => client.query('lock table applied_schemas in share row exclusive mode'))
      const wanted = checkReferences(await readSchemas(client, tenant.limits))
      requireBounded((await client.query<Row>(homeSizeSql)).rows[0])
      const input = {
        tenantId: tenant.id,
        wanted,
        before: await readApplied(client),
        tables: await readExistingTables(client),
      }
      const plan = planReload({ ...input, confirmed: new Set(confirmed) })
      rejectUnconfirmed(plan, confirmed)
      requireBoundedSchemas(Buffer.byteLength(JSON.stringify(plan.applied)), 'applied schemas')
      for (const step of plan.steps) await execute(client, step, wanted)
      await asPublisher(client, () => writeApplied(client, plan))
      await this.#options.onTables?.(client)
      const { rows } = await execute<Row>(client, { sql: introspection.text }, wanted)
      const { text, values } = lintStatement(tenant.id)
      const facts = await client.query<{ facts: string }>(text, [...values])
      const violations = lint(JSON.parse(facts.rows[0]?.facts ?? '{}') as LintFacts, namesOf(plan.applied))
      const settings = changedSettings(await readSettings(client), change)
      const home = describedHome(rows[0])
      requireFunctions(settings, home)
      const published = { ...toPublish(home, plan.applied), settings }
      const version = randomUUID()
      const checkedAt = this.#options.now()
      await asPublisher(client, () =>
        client.query(
          `insert into published_catalog (document, version) values ($1, $2)
         on conflict (only_row) do update set document = excluded.document, version = excluded.version, published_at = now()`,
          [JSON.stringify(published), version],
        ),
      )
      return { plan, published, violations, version, checkedAt }
    })
    this.#tenants.set(
      tenant.id,
      Promise.resolve({
        catalogs: publish(withoutUnsafe(published, violations)),
        version,
        checkedAt,
      }),
    )
    this.#report(tenant, violations)
    return {
      collections: published.schemas.map(({ name }) => name),
      actions: plan.actions,
      droppable: plan.droppable,
      warnings: violations.map(({ message }) => message),
      settings: published.settings,
    }
  }

  evict(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  async #load(tenant: Tenant): Promise<LoadedCatalog> {
    const checkedAt = this.#options.now()
    const [stored, found] = await tenant.database.readAnywhere(
      serviceContext,
      sql('select document, version::text from published_catalog'),
      lintStatement(tenant.id),
    )
    const row = stored?.rows[0]
    // The stored document was checked before it was written.
    const published =
      row === undefined ? await beforeAnyReload(tenant) : await withModifiers(tenant, row['document'] as Published)
    const violations = lint(
      JSON.parse(String(found?.rows[0]?.['facts'])) as LintFacts,
      new Set([...published.schemas.map(({ name }) => name), ...published.withdrawn]),
    )
    this.#report(tenant, violations)
    return {
      catalogs: publish(withoutUnsafe(published, violations)),
      version: String(row?.['version']),
      checkedAt,
    }
  }

  #report({ id }: Tenant, violations: readonly LintViolation[]): void {
    for (const { message, isAlarming } of violations)
      if (isAlarming) this.#options.onError?.(new Error(`Home ${id}: ${message}`))
  }
}

/** Whether another session holds a required lock. */
function isBusy(error: unknown): boolean {
  if (error instanceof RoundTripError) return error.sqlstate === '55P03' || error.sqlstate === '40P01'
  return error instanceof RuntimeError && error.code === 'DATABASE_BUSY'
}

const serviceContext: RlsContext = { role: 'service', reason: 'registry' }

async function readVersion(tenant: Tenant): Promise<string> {
  const [found] = await tenant.database.readAnywhere(serviceContext, sql('select version::text from published_catalog'))
  return String(found?.rows[0]?.['version'])
}

function toPublish(home: HomeDescription, applied: readonly Applied[]): Published {
  const named = (published: boolean) =>
    applied.filter((one) => one.published === published).map(({ definition }) => definition)
  return { home, schemas: named(true), withdrawn: named(false).map(({ name }) => name) }
}

function namesOf(applied: readonly Applied[]): Set<string> {
  return new Set(applied.map(({ definition }) => definition.name))
}

function withoutUnsafe(published: Published, violations: readonly LintViolation[]): Published {
  const { home } = published
  const isUnservable = violations.some(({ unsafe }) => unsafe === 'everything')
  const [routines, handlers] = isUnservable ? [[], []] : [home.routines, home.handlers ?? []]
  return {
    ...published,
    home: { ...home, relations: home.relations.filter(({ name }) => !isUnsafe(violations, name)), routines, handlers },
  }
}

/** Returns the service's own collections, and those of earlier reloads that did not publish a catalog. */
async function beforeAnyReload({ database }: Tenant): Promise<Published> {
  const [described, applied] = await database.readAnywhere(
    serviceContext,
    introspection,
    sql('select definition, published from applied_schemas order by name'),
  )
  const home = homeOf(described)
  const published = toPublish(home, (applied?.rows ?? []) as unknown as Applied[])
  const names = new Set([...systemCollections.keys(), ...published.schemas.map(({ name }) => name)])
  return {
    ...published,
    home: { ...home, relations: home.relations.filter(({ name }) => names.has(name)), routines: [], handlers: [] },
  }
}

/** Completes catalogs that were published without the modifiers of their types, from the current home. */
async function withModifiers({ database }: Tenant, published: Published): Promise<Published> {
  if (hasModifiers(published.home)) return published
  const [described] = await database.readAnywhere(serviceContext, introspection)
  return { ...published, home: completeTypes(published.home, homeOf(described)) }
}

function homeOf(described: Result | undefined): HomeDescription {
  return describedHome(described?.rows[0])
}

/** Parses the row of `introspection`. @throws RuntimeError QUOTA_EXCEEDED */
function describedHome(row: Row | undefined): HomeDescription {
  requireBounded(row)
  return completeViews(JSON.parse(String(row?.['home'])) as HomeAsRead)
}

async function readSchemas(client: pg.Client, limits: Limits): Promise<SchemaDefinition[]> {
  // One statement, so that no other session adds schemas between the check and the reading.
  const { rows } = await client.query<WrittenSchema & { name: string | null; count: string; bytes: string }>(
    `select s.name, s.fields, s.rls_policy, s.events, size.count, size.bytes
     from (${schemaSizeSql}) size left join schemas s on size.bytes <= $1 order by s.name`,
    [maxSchemaBytes],
  )
  requireBoundedSchemas(Number(rows[0]?.bytes), 'schemas')
  requireSchemasWithin(limits, { count: Number(rows[0]?.count), bytes: Number(rows[0]?.bytes) })
  return rows.flatMap((row) => {
    if (row.name === null) return []
    try {
      return [checkSchema(row)]
    } catch (cause) {
      // Schemas can also be written with SQL, without our checks.
      if (cause instanceof RuntimeError)
        throw new RuntimeError('INVALID_SCHEMA', `Schema "${row.name}": ${cause.message}`, { cause })
      throw cause
    }
  })
}

/** Returns the settings of the last reload. */
async function readSettings(client: pg.Client): Promise<RestSettings> {
  const { rows } = await client.query<{ settings: Partial<RestSettings> | null }>(
    `select document -> 'settings' as settings from published_catalog`,
  )
  return { ...defaultSettings, ...rows[0]?.settings }
}

async function readApplied(client: pg.Client): Promise<Applied[]> {
  const { rows } = await client.query<Applied>('select definition, published from applied_schemas')
  return rows
}

async function writeApplied(client: pg.Client, { changed, dropped }: ReloadPlan): Promise<void> {
  if (dropped.length > 0) await client.query('delete from applied_schemas where name = any($1)', [dropped])
  if (changed.length === 0) return
  await client.query(
    `insert into applied_schemas (name, definition, published)
     select definition ->> 'name', definition, published from json_to_recordset($1::json) as changed (definition jsonb, published boolean)
     on conflict (name) do update set definition = excluded.definition, published = excluded.published, applied_at = now()`,
    [JSON.stringify(changed)],
  )
}

async function execute<T extends pg.QueryResultRow>(
  client: pg.Client,
  step: Step,
  wanted: readonly SchemaDefinition[],
): Promise<pg.QueryResult<T>> {
  try {
    return await client.query<T>(step.sql)
  } catch (cause) {
    throw reloadError(cause, step, wanted)
  }
}

function rejectUnconfirmed({ destructive, droppable, actions }: ReloadPlan, confirmed: readonly string[]): void {
  const known = new Set([...destructive, ...droppable])
  const reject = (message: string) =>
    new RuntimeError('DESTRUCTIVE_SCHEMA_CHANGE', message, { extra: { changes: destructive, droppable, actions } })
  const other = confirmed.find((line) => !known.has(line))
  if (other !== undefined) throw reject(`The reload would not do what is confirmed: ${other}`)
  const missing = destructive.filter((line) => !confirmed.includes(line))
  if (missing.length > 0) throw reject(`The reload would lose data. Confirm these changes: ${missing.join('; ')}`)
}
