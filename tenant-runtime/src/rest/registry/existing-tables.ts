// Reads the tables of a home as they are, including those that were created or changed with SQL.
import type pg from 'pg'

export interface ExistingTable {
  /** Whether row-level security is enabled and forced, so that it applies to the owner too. */
  hasRowSecurity: boolean
  primaryKey: string | undefined
  /** The names of all constraints but `not null`. */
  constraints: ReadonlySet<string>
  indexes: ReadonlySet<string>
  triggers: ReadonlySet<string>
}

/** Returns the tables by name. Runs in the schema of the session. */
export async function readExistingTables(client: pg.Client): Promise<ReadonlyMap<string, ExistingTable>> {
  const { rows } = await client.query<{
    name: string
    row_security: boolean
    primary_key: string | null
    constraints: string[]
    indexes: string[]
    triggers: string[]
  }>(`
    select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as row_security,
      (select conname::text from pg_constraint where conrelid = c.oid and contype = 'p') as primary_key,
      array(select conname::text from pg_constraint where conrelid = c.oid and contype in ('c', 'u', 'f', 'p')) as constraints,
      array(select i.relname::text from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = c.oid) as indexes,
      array(select tgname::text from pg_trigger where tgrelid = c.oid and not tgisinternal) as triggers
    from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'`)
  return new Map(
    rows.map(({ name, row_security, primary_key, constraints, indexes, triggers }) => [
      name,
      {
        hasRowSecurity: row_security,
        primaryKey: primary_key ?? undefined,
        constraints: new Set(constraints),
        indexes: new Set(indexes),
        triggers: new Set(triggers),
      },
    ]),
  )
}
