// Reads what is necessary to describe changes of a table to clients: its columns with their types, its key, and whether its
// changes are events.
import { sql } from '../../database/statement.ts'
import { systemCollections } from '../../rest/registry/system-collections.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

export const changesContext: RlsContext = { role: 'service', reason: 'realtime changes' }

export interface Column {
  name: string
  /** Postgres' name of the type, such as `int8` or `_text`. Clients convert values by it. */
  type: string
  /** The type as SQL writes it, such as `numeric(10,2)`. */
  definition: string
}

export interface TableFacts {
  columns: readonly Column[]
  /** The columns of the primary key, in its order. */
  keys: readonly string[]
}

// Only tables that a tenant has made with SQL have a column `tenant_id` of their own.
const factsText = `
  select (select json_agg(json_build_object('name', a.attname, 'type', t.typname, 'definition', format_type(t.oid, a.atttypmod))
            order by a.attnum) from pg_attribute a join pg_type t on t.oid = a.atttypid
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            and (a.attname <> 'tenant_id' or p.proname = 'realtime_table_change_logged'))::text as columns,
    (select coalesce(json_agg(a.attname order by array_position(i.indkey::int2[], a.attnum)), '[]')
      from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
      where i.indrelid = c.oid and i.indisprimary)::text as keys
  from pg_class c join pg_trigger g on g.tgrelid = c.oid and g.tgname = 'events_insert' and g.tgenabled <> 'D'
    join pg_proc p on p.oid = g.tgfoid
  where c.relnamespace = current_schema()::regnamespace and c.relname = $1`

/** Returns the facts about a table; undefined for a table that does not exist or whose changes are not events. */
export async function readTableFacts({ database }: Tenant, table: string): Promise<TableFacts | undefined> {
  const { rows } = await database.lookUp(changesContext, sql(factsText, table))
  const [row] = rows
  if (row === undefined) return undefined
  const columns = JSON.parse(String(row['columns'])) as Column[]
  const visible = systemCollections.get(table)?.columns
  return {
    columns: visible === undefined ? columns : columns.filter(({ name }) => visible.includes(name)),
    keys: JSON.parse(String(row['keys'])) as string[],
  }
}

/** Milliseconds after which facts are read again. */
const maxAge = 10_000

/** The facts about a tenant's tables, which are cached for some seconds. */
export class KnownTables {
  readonly #elapsed: () => number
  readonly #known = new Map<string, { facts: Promise<TableFacts | undefined>; at: number }>()

  /** @param elapsed returns monotonic milliseconds */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /**
   * Returns the facts about a table.
   * @param columns columns that the table must have. If the known facts lack one, the facts are read again.
   */
  async get(tenant: Tenant, table: string, columns: readonly string[] = []): Promise<TableFacts | undefined> {
    const now = this.#elapsed()
    const known = this.#known.get(table)
    if (known !== undefined && now - known.at < maxAge) {
      const facts = await known.facts
      if (facts !== undefined && columns.every((name) => facts.columns.some((column) => column.name === name)))
        return facts
    }
    const facts = readTableFacts(tenant, table)
    const entry = { facts, at: now }
    this.#known.set(table, entry)
    const drop = () => {
      if (this.#known.get(table) === entry) this.#known.delete(table)
    }
    // Clients choose the names. Only those of tables with events are kept.
    facts.then((found) => {
      if (found === undefined) drop()
    }, drop)
    return facts
  }

  clear(): void {
    this.#known.clear()
  }
}
