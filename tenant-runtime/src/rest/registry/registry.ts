// What is served of each tenant's home, as its last reload left it, and the reload itself.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { asPublisher } from '../../database/as-publisher.ts'
import { sql, type Result } from '../../database/statement.ts'
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
import { introspection, type HomeDescription } from './introspect.ts'
import { isUnsafe, lint, lintStatement, type LintFacts, type LintViolation } from './lint.ts'
import { publish, type Published } from './publish.ts'
import type { Applied, Step } from './reload-draft.ts'
import { reloadError } from './reload-error.ts'
import { planReload, type ReloadPlan } from './reload-plan.ts'
import { systemCollections } from './system-collections.ts'

interface ReloadResult {
  collections: string[]
  actions: string[]
  /** Lines that can be confirmed to drop tables that were kept. */
  droppable: string[]
  /** What of the home is not safe, and not served for that. */
  warnings: string[]
}

interface RegistryOptions {
  /** Other runtimes serve the same tenants: their reloads are looked for when so much time has passed. Undefined: there are none. */
  recheckMilliseconds?: number
  /** In milliseconds. */
  now: () => number
  /** Told within a reload, in its transaction, once the tables are as they will be. */
  onTables?: (client: pg.Client) => Promise<void>
  /** Somebody has taken down what keeps callers apart. */
  onError?: (error: Error) => void
}

interface Known {
  catalog: Catalog
  /** Changes with every reload, whoever made it. */
  version: string
  checkedAt: number
}

interface ReloadRequest {
  tenant: Tenant
  confirmed: readonly string[]
}

/**
 * How long a reload waits for a lock, try after try: whoever uses the table meanwhile waits behind it, and goes on in the
 * pauses between. Each is shorter than Postgres takes for a deadlock (1 s), so that no request ever pays for one.
 */
const lockMilliseconds = [100, 200, 400, 800, 800, 800]

export class Registry {
  readonly #options: RegistryOptions
  readonly #tenants = new Map<string, Promise<Known>>()
  readonly #reloads = new SharedRun(
    (request: ReloadRequest) => this.#inTurn(request),
    ({ tenant, confirmed }) => JSON.stringify([tenant.id, ...confirmed]),
  )
  readonly #turns = new Map<string, Promise<ReloadResult>>()

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  /** Read from the home on first use; until the next reload nothing changes it. */
  async catalog(tenant: Tenant): Promise<Catalog> {
    const loading = this.#tenants.get(tenant.id)
    if (loading === undefined) return (await this.#remember(tenant.id, this.#load(tenant))).catalog
    const known = await loading
    const { recheckMilliseconds, now } = this.#options
    if (recheckMilliseconds === undefined || now() - known.checkedAt < recheckMilliseconds) return known.catalog
    // Whoever asks meanwhile goes on with what is known.
    known.checkedAt = now()
    if ((await readVersion(tenant)) === known.version) return known.catalog
    return (await this.#remember(tenant.id, this.#load(tenant))).catalog
  }

  #remember(tenantId: string, loading: Promise<Known>): Promise<Known> {
    this.#tenants.set(tenantId, loading)
    // A failure must not be remembered.
    loading.catch(() => this.#tenants.delete(tenantId))
    return loading
  }

  /**
   * Brings tables to their schemas, in one transaction, and publishes the result when all of it is done. Who asks while one
   * is under way shares the next with all who confirm the same.
   * @param confirmed lines of an earlier answer, for changes that lose data
   * @throws RuntimeError INVALID_SCHEMA, SCHEMA_NOT_MET, DESTRUCTIVE_SCHEMA_CHANGE with the list, DATABASE_BUSY; nothing is
   * changed then
   */
  reload(tenant: Tenant, confirmed: readonly string[] = []): Promise<ReloadResult> {
    return this.#reloads.run({ tenant, confirmed })
  }

  /** One at a time: what is published last must be what was done last. */
  #inTurn({ tenant, confirmed }: ReloadRequest): Promise<ReloadResult> {
    const reload = () => this.#reload(tenant, confirmed)
    const turn = (this.#turns.get(tenant.id) ?? Promise.resolve()).then(reload, reload)
    const over = () => {
      if (this.#turns.get(tenant.id) === turn) this.#turns.delete(tenant.id)
    }
    this.#turns.set(tenant.id, turn)
    turn.then(over, over)
    return turn
  }

  async #reload(
    tenant: Tenant,
    confirmed: readonly string[],
    [milliseconds = 0, ...further]: readonly number[] = lockMilliseconds,
  ): Promise<ReloadResult> {
    try {
      return await this.#tryReload(tenant, confirmed, milliseconds)
    } catch (error) {
      if (!isBusy(error)) throw error
      if (further.length === 0)
        throw new RuntimeError('DATABASE_BUSY', 'a table is in use; try the reload again', { cause: error })
    }
    await pause(milliseconds)
    return this.#reload(tenant, confirmed, further)
  }

  async #tryReload(tenant: Tenant, confirmed: readonly string[], lockMilliseconds: number): Promise<ReloadResult> {
    const {
      plan,
      published,
      problems: errors,
      version,
    } = await tenant.database.withOwner(async (client) => {
      await client.query("select set_config('lock_timeout', $1, true)", [`${lockMilliseconds}ms`])
      // Reloads of several runtimes wait for each other here.
      await asPublisher(client, () => client.query('lock table applied_schemas in share row exclusive mode'))
      const wanted = checkReferences(await readSchemas(client))
      const input = {
        tenantId: tenant.id,
        wanted,
        before: await readApplied(client),
        tables: await readExistingTables(client),
      }
      const plan = planReload({ ...input, confirmed: new Set(confirmed) })
      rejectUnconfirmed(plan, confirmed)
      for (const step of plan.steps) await execute(client, step, wanted)
      await asPublisher(client, () => writeApplied(client, plan))
      await this.#options.onTables?.(client)
      const { rows } = await execute<{ home: string }>(client, { sql: introspection.text }, wanted)
      const { text, values } = lintStatement(tenant.id)
      const facts = await client.query<{ facts: string }>(text, [...values])
      const errors = lint(JSON.parse(facts.rows[0]?.facts ?? '{}') as LintFacts, namesOf(plan.applied))
      const published = toPublish(JSON.parse(rows[0]?.home ?? '{}') as HomeDescription, plan.applied)
      const version = randomUUID()
      await asPublisher(client, () =>
        client.query(
          `insert into published_catalog (document, version) values ($1, $2)
         on conflict (only_row) do update set document = excluded.document, version = excluded.version, published_at = now()`,
          [JSON.stringify(published), version],
        ),
      )
      return { plan, published, problems: errors, version }
    })
    this.#tenants.set(
      tenant.id,
      Promise.resolve({
        catalog: publish(withoutUnsafe(published, errors)),
        version,
        checkedAt: this.#options.now(),
      }),
    )
    this.#report(tenant, errors)
    return {
      collections: published.schemas.map(({ name }) => name),
      actions: plan.actions,
      droppable: plan.droppable,
      warnings: errors.map(({ message }) => message),
    }
  }

  evict(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  async #load(tenant: Tenant): Promise<Known> {
    const [stored, found] = await tenant.database.run(
      poll,
      sql('select document, version::text from published_catalog'),
      lintStatement(tenant.id),
    )
    const row = stored?.rows[0]
    // What stands there was checked before it was written.
    const published =
      row === undefined ? await beforeAnyReload(tenant) : await withModifiers(tenant, row['document'] as Published)
    const errors = lint(
      JSON.parse(String(found?.rows[0]?.['facts'])) as LintFacts,
      new Set([...published.schemas.map(({ name }) => name), ...published.withdrawn]),
    )
    this.#report(tenant, errors)
    return {
      catalog: publish(withoutUnsafe(published, errors)),
      version: String(row?.['version']),
      checkedAt: this.#options.now(),
    }
  }

  #report({ id }: Tenant, errors: readonly LintViolation[]): void {
    for (const { message, isAlarming } of errors)
      if (isAlarming) this.#options.onError?.(new Error(`home ${id}: ${message}`))
  }
}

/** Somebody else has a lock that it needs. */
function isBusy(error: unknown): boolean {
  if (error instanceof RoundTripError) return error.sqlstate === '55P03' || error.sqlstate === '40P01'
  return error instanceof RuntimeError && error.code === 'DATABASE_BUSY'
}

const poll: RlsContext = { role: 'service', reason: 'registry' }

async function readVersion(tenant: Tenant): Promise<string> {
  const { rows } = await tenant.database.query(poll, 'select version::text from published_catalog')
  return String(rows[0]?.['version'])
}

function toPublish(home: HomeDescription, applied: readonly Applied[]): Published {
  const named = (published: boolean) =>
    applied.filter((one) => one.published === published).map(({ definition }) => definition)
  return { home, schemas: named(true), withdrawn: named(false).map(({ name }) => name) }
}

function namesOf(applied: readonly Applied[]): Set<string> {
  return new Set(applied.map(({ definition }) => definition.name))
}

function withoutUnsafe(published: Published, errors: readonly LintViolation[]): Published {
  const { home } = published
  const routines = errors.some(({ unsafe }) => unsafe === 'everything') ? [] : home.routines
  return {
    ...published,
    home: { ...home, relations: home.relations.filter(({ name }) => !isUnsafe(errors, name)), routines },
  }
}

/** The service's own collections, and those of reloads that did not leave a catalog behind. */
async function beforeAnyReload({ database }: Tenant): Promise<Published> {
  const [described, applied] = await database.run(
    poll,
    introspection,
    sql('select definition, published from applied_schemas order by name'),
  )
  const home = homeOf(described)
  const published = toPublish(home, (applied?.rows ?? []) as unknown as Applied[])
  const names = new Set([...systemCollections.keys(), ...published.schemas.map(({ name }) => name)])
  return {
    ...published,
    home: { ...home, relations: home.relations.filter(({ name }) => names.has(name)), routines: [] },
  }
}

/** Catalogs that were published without the modifiers of their types are completed from the home as it is. */
async function withModifiers({ database }: Tenant, published: Published): Promise<Published> {
  if (hasModifiers(published.home)) return published
  const [described] = await database.run(poll, introspection)
  return { ...published, home: completeTypes(published.home, homeOf(described)) }
}

function homeOf(described: Result | undefined): HomeDescription {
  return JSON.parse(String(described?.rows[0]?.['home'])) as HomeDescription
}

async function readSchemas(client: pg.Client): Promise<SchemaDefinition[]> {
  const { rows } = await client.query<WrittenSchema & { name: string }>(
    'select name, fields, rls_policy, events from schemas order by name',
  )
  return rows.map((row) => {
    try {
      return checkSchema(row)
    } catch (cause) {
      // Schemas can also be written with SQL, past every check of ours.
      if (cause instanceof RuntimeError)
        throw new RuntimeError('INVALID_SCHEMA', `schema "${row.name}": ${cause.message}`, { cause })
      throw cause
    }
  })
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
  if (other !== undefined) throw reject(`what is confirmed is not what the reload would do: ${other}`)
  const missing = destructive.filter((line) => !confirmed.includes(line))
  if (missing.length > 0) throw reject(`this would lose data, and is done when it is confirmed: ${missing.join('; ')}`)
}
