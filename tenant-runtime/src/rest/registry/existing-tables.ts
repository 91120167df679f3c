// The tables of a home as they are: what a reload finds, whoever made or changed it.
import type pg from 'pg'

export interface ExistingTable {
  /** Row-level security is on, for the owner too. */
  isWalled: boolean
  primaryKey: string | undefined
  /** Names of all constraints but `not null`. */
  constraints: ReadonlySet<string>
  indexes: ReadonlySet<string>
  triggers: ReadonlySet<string>
}

/** By name. Runs in the schema of the session. */
export async function readExistingTables(client: pg.Client): Promise<ReadonlyMap<string, ExistingTable>> {
  const { rows } = await client.query<{
    name: string
    walled: boolean
    primary_key: string | null
    constraints: string[]
    indexes: string[]
    triggers: string[]
  }>(`
    select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as walled,
      (select conname::text from pg_constraint where conrelid = c.oid and contype = 'p') as primary_key,
      array(select conname::text from pg_constraint where conrelid = c.oid and contype in ('c', 'u', 'f', 'p')) as constraints,
      array(select i.relname::text from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = c.oid) as indexes,
      array(select tgname::text from pg_trigger where tgrelid = c.oid and not tgisinternal) as triggers
    from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'`)
  return new Map(
    rows.map(({ name, walled, primary_key, constraints, indexes, triggers }) => [
      name,
      {
        isWalled: walled,
        primaryKey: primary_key ?? undefined,
        constraints: new Set(constraints),
        indexes: new Set(indexes),
        triggers: new Set(triggers),
      },
    ]),
  )
}
