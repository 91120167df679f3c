// What is served of each tenant's home, as its last reload left it, and the reload itself.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { sql } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Catalog } from './catalog.ts'
import { checkSchema } from './check-schema.ts'
import type { SchemaDefinition } from './collection.ts'
import { introspection, type HomeDescription } from './introspect.ts'
import { publish, type Published } from './publish.ts'
import { planReload, type Applied } from './reload-plan.ts'
import { systemCollections } from './system-collections.ts'

export interface ReloadResult {
  collections: string[]
  actions: string[]
}

export interface RegistryOptions {
  /** Other runtimes serve the same tenants: their reloads are looked for when so much time has passed. Undefined: there are none. */
  recheckMilliseconds?: number
  /** In milliseconds. */
  now: () => number
}

interface Known {
  catalog: Catalog
  /** Changes with every reload, whoever made it. */
  version: string
  checkedAt: number
}

export class Registry {
  readonly #options: RegistryOptions
  readonly #tenants = new Map<string, Promise<Known>>()

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
   * Brings tables to their schemas, in one transaction, and publishes the result when all of it is done.
   * @throws RuntimeError INVALID_SCHEMA, DESTRUCTIVE_SCHEMA_CHANGE with the list; nothing is changed then
   */
  async reload(tenant: Tenant): Promise<ReloadResult> {
    const { plan, published, version } = await tenant.database.withOwner(async (client) => {
      // Reloads at the same time wait for each other here.
      await client.query('lock table applied_schemas in share row exclusive mode')
      const plan = planReload(tenant.id, await readSchemas(client), await readApplied(client))
      if (plan.destructive.length > 0) {
        throw new RuntimeError('DESTRUCTIVE_SCHEMA_CHANGE', `this would lose data: ${plan.destructive.join('; ')}`, { extra: { changes: plan.destructive } })
      }
      for (const statement of plan.statements) await execute(client, statement)
      for (const { definition, published } of plan.applied) {
        await client.query(
          `insert into applied_schemas (name, definition, published) values ($1, $2, $3)
           on conflict (name) do update set definition = excluded.definition, published = excluded.published, applied_at = now()`,
          [definition.name, JSON.stringify(definition), published],
        )
      }
      const { rows } = await client.query<{ home: string }>(introspection.text)
      const published = toPublish(JSON.parse(rows[0]?.home ?? '{}') as HomeDescription, plan.applied)
      const version = randomUUID()
      await client.query(
        `insert into published_catalog (document, version) values ($1, $2)
         on conflict (only_row) do update set document = excluded.document, version = excluded.version, published_at = now()`,
        [JSON.stringify(published), version],
      )
      return { plan, published, version }
    })
    this.#tenants.set(tenant.id, Promise.resolve({ catalog: publish(published), version, checkedAt: this.#options.now() }))
    return { collections: published.schemas.map(({ name }) => name), actions: plan.actions }
  }

  forget(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  async #load(tenant: Tenant): Promise<Known> {
    const { rows } = await tenant.database.query(look, 'select document, version::text from published_catalog')
    const [row] = rows
    // What stands there was checked before it was written.
    const published = row === undefined ? await beforeAnyReload(tenant) : (row['document'] as Published)
    return { catalog: publish(published), version: String(row?.['version']), checkedAt: this.#options.now() }
  }
}

const look: RlsContext = { role: 'service', reason: 'registry' }

async function readVersion(tenant: Tenant): Promise<string> {
  const { rows } = await tenant.database.query(look, 'select version::text from published_catalog')
  return String(rows[0]?.['version'])
}

function toPublish(home: HomeDescription, applied: readonly Applied[]): Published {
  const named = (published: boolean) => applied.filter((one) => one.published === published).map(({ definition }) => definition)
  return { home, schemas: named(true), withdrawn: named(false).map(({ name }) => name) }
}

/** The service's own collections, and those of reloads that did not leave a catalog behind. */
async function beforeAnyReload({ database }: Tenant): Promise<Published> {
  const [described, applied] = await database.run(look, introspection, sql('select definition, published from applied_schemas order by name'))
  const home = JSON.parse(String(described?.rows[0]?.['home'])) as HomeDescription
  const published = toPublish(home, (applied?.rows ?? []) as unknown as Applied[])
  const names = new Set([...systemCollections.keys(), ...published.schemas.map(({ name }) => name)])
  return { ...published, home: { ...home, relations: home.relations.filter(({ name }) => names.has(name)), routines: [] } }
}

async function readSchemas(client: pg.Client): Promise<SchemaDefinition[]> {
  const { rows } = await client.query<{ name: string; fields: unknown; rls_policy: unknown }>('select name, fields, rls_policy from schemas order by name')
  return rows.map((row) => {
    try {
      return checkSchema(row)
    } catch (cause) {
      // Schemas can also be written with SQL, past every check of ours.
      if (cause instanceof RuntimeError) throw new RuntimeError('INVALID_SCHEMA', `schema "${row.name}": ${cause.message}`, { cause })
      throw cause
    }
  })
}

async function readApplied(client: pg.Client): Promise<Applied[]> {
  const { rows } = await client.query<Applied>('select definition, published from applied_schemas')
  return rows
}

async function execute(client: pg.Client, statement: string): Promise<void> {
  try {
    await client.query(statement)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === '55P03') throw new RuntimeError('DATABASE_BUSY', 'a table is in use; try the reload again', { cause })
    if (code === '23502') throw new RuntimeError('DESTRUCTIVE_SCHEMA_CHANGE', 'a field can only become required, or be added as required, when every record has it', { cause })
    if (code === '42P07') throw new RuntimeError('CONFLICT', 'the home has a table of that name already, which no schema made', { cause })
    throw cause
  }
}
