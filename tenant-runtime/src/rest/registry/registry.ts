// The collections of each tenant as its last reload left them, and the reload itself.
import type pg from 'pg'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { checkSchema } from './check-schema.ts'
import { toCollection, type Collection, type SchemaDefinition } from './collection.ts'
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
  collections: ReadonlyMap<string, Collection>
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
  async collections(tenant: Tenant): Promise<ReadonlyMap<string, Collection>> {
    const loading = this.#tenants.get(tenant.id)
    if (loading === undefined) return (await this.#remember(tenant.id, this.#load(tenant))).collections
    const known = await loading
    const { recheckMilliseconds, now } = this.#options
    if (recheckMilliseconds === undefined || now() - known.checkedAt < recheckMilliseconds) return known.collections
    // Whoever asks meanwhile goes on with what is known.
    known.checkedAt = now()
    if ((await readVersion(tenant)) === known.version) return known.collections
    return (await this.#remember(tenant.id, this.#load(tenant))).collections
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
    const { plan } = await tenant.database.withOwner(async (client) => {
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
      return { plan }
    })
    const version = await readVersion(tenant)
    this.#tenants.set(tenant.id, Promise.resolve({ collections: publish(plan.applied), version, checkedAt: this.#options.now() }))
    return { collections: plan.applied.filter(({ published }) => published).map(({ definition }) => definition.name), actions: plan.actions }
  }

  forget(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  async #load(tenant: Tenant): Promise<Known> {
    // First: a reload that comes in between is seen at the next look.
    const version = await readVersion(tenant)
    const { rows } = await tenant.database.query(
      { role: 'service', reason: 'registry' },
      'select definition from applied_schemas where published order by name',
    )
    // What stands there was checked before it was written.
    const applied = rows.map((row) => ({ definition: row['definition'] as SchemaDefinition, published: true }))
    return { collections: publish(applied), version, checkedAt: this.#options.now() }
  }
}

async function readVersion(tenant: Tenant): Promise<string> {
  const { rows } = await tenant.database.query(
    { role: 'service', reason: 'registry' },
    "select coalesce(max(applied_at)::text, '') || '/' || count(*) filter (where published) as version from applied_schemas",
  )
  return String(rows[0]?.['version'])
}

function publish(applied: readonly Applied[]): ReadonlyMap<string, Collection> {
  const own = applied.filter(({ published }) => published).map(({ definition }) => toCollection(definition))
  return new Map([...systemCollections, ...own.map((collection) => [collection.name, collection] as const)])
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
