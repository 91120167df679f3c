// Measures a shared database and its homes by the files of the server, so that no lock of a tenant delays it.
import { asAdmin, type SharedLocation } from '../backups/index.ts'
import { isState } from '../platform/sql-state.ts'

export interface MeasuredHomes {
  /** The size of the database. */
  bytes: number
  /** The size of each home, with its indexes and large values, by the tenant's ID. */
  homes: ReadonlyMap<string, number>
}

/**
 * Files of a relation are named by its number, with a suffix for further parts. Large values are in a relation of their own, which
 * has an index.
 */
const homesText = `
  with files as (
    select substring(file from '^[0-9]+')::oid as node, sum((pg_stat_file(folder || '/' || file, true)).size) as bytes
    from (select 'base/' || oid as folder from pg_database where datname = current_database()) as found,
      lateral pg_ls_dir(folder) as file
    where file ~ '^[0-9]+' group by 1),
  relations as (
    select relnamespace, oid from pg_class where relkind in ('r', 'i', 'm', 'S')
    union all select relnamespace, reltoastrelid from pg_class where reltoastrelid <> 0
    union all select c.relnamespace, i.indexrelid from pg_class c join pg_index i on i.indrelid = c.reltoastrelid
      where c.reltoastrelid <> 0)
  select n.nspname as schema, sum(f.bytes)::text as bytes
  from relations r join pg_class c on c.oid = r.oid join files f on f.node = c.relfilenode
    join pg_namespace n on n.oid = r.relnamespace
  where n.nspname ~ '^t_[0-9a-f]{20}$' group by 1`

/**
 * The server's errors for a database that does not exist, and for one whose creation is not complete. A database is opened in the
 * control database first, and on the server before its first home.
 */
const notCreated = ['3D000', '55000']

/** Measures a database and its homes. One that does not exist yet is empty. */
export async function measureHomes(location: SharedLocation, signal: AbortSignal): Promise<MeasuredHomes> {
  try {
    return await asAdmin(location, signal, async (client) => {
      const { rows } = await client.query<{ schema: string; bytes: string }>(homesText)
      const bytes = await databaseBytes(client)
      return { bytes, homes: new Map(rows.map((row) => [row.schema, Number(row.bytes)])) }
    })
  } catch (cause) {
    if (isState(cause, ...notCreated)) return { bytes: 0, homes: new Map() }
    throw cause
  }
}

/** Measures a database. Returns undefined for one that does not exist yet. */
export async function measureDatabase(location: SharedLocation, signal: AbortSignal): Promise<number | undefined> {
  try {
    return await asAdmin(location, signal, databaseBytes)
  } catch (cause) {
    if (isState(cause, ...notCreated)) return undefined
    throw cause
  }
}

async function databaseBytes(client: Parameters<Parameters<typeof asAdmin>[2]>[0]): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>('select pg_database_size(current_database())::text as bytes')
  return Number(rows[0]?.bytes)
}
