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

export class Registry {
  readonly #tenants = new Map<string, Promise<ReadonlyMap<string, Collection>>>()

  /** Read from the home on first use; until the next reload nothing changes it. */
  async collections(tenant: Tenant): Promise<ReadonlyMap<string, Collection>> {
    let loading = this.#tenants.get(tenant.id)
    if (loading === undefined) {
      loading = this.#load(tenant)
      this.#tenants.set(tenant.id, loading)
      // A failure must not be remembered.
      loading.catch(() => this.#tenants.delete(tenant.id))
    }
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
    const collections = publish(plan.applied)
    this.#tenants.set(tenant.id, Promise.resolve(collections))
    return { collections: plan.applied.filter(({ published }) => published).map(({ definition }) => definition.name), actions: plan.actions }
  }

  forget(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  async #load(tenant: Tenant): Promise<ReadonlyMap<string, Collection>> {
    const { rows } = await tenant.database.query(
      { role: 'service', reason: 'registry' },
      'select definition from applied_schemas where published order by name',
    )
    // What stands there was checked before it was written.
    return publish(rows.map((row) => ({ definition: row['definition'] as SchemaDefinition, published: true })))
  }
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
