// Functions of Postgres that no tenant may call. By default, every login of a database may call them, and each writes or
// uses something that all databases of the server share and that no quota counts.
import type { ClientBase, Pool } from 'pg'
import { literal } from './identifiers.ts'

/** Names of functions, by the reason why PUBLIC may not execute them. Every signature of a name is meant. */
const closedFunctions: Readonly<Record<string, readonly string[]>> = {
  'One lock table serves all databases of the server, and advisory locks could fill it.': [
    'pg_advisory_lock',
    'pg_advisory_lock_shared',
    'pg_advisory_xact_lock',
    'pg_advisory_xact_lock_shared',
    'pg_try_advisory_lock',
    'pg_try_advisory_lock_shared',
    'pg_try_advisory_xact_lock',
    'pg_try_advisory_xact_lock_shared',
  ],
  'Each call locks every partition of the lock table, and so delays the locks of others. It also shows what others lock.':
    ['pg_lock_status', 'pg_blocking_pids', 'pg_safe_snapshot_blocking_pids', 'pg_isolation_test_session_is_blocked'],
  'Large objects belong to no schema, so no quota counts them.': [
    'lo_create',
    'lo_creat',
    'lo_from_bytea',
    'lo_import',
    'lo_open',
    'lo_put',
    'lowrite',
    'lo_truncate',
    'lo_truncate64',
  ],
  'It writes up to 1 GB of write-ahead log with each call, and stores nothing that a quota counts.': [
    'pg_logical_emit_message',
  ],
  'Each call creates a file on the server, which stays until the transaction ends.': ['pg_export_snapshot'],
  'It writes up to 1 GB with each call to a catalog, which no quota counts.': [
    'pg_restore_attribute_stats',
    'pg_restore_relation_stats',
  ],
  'It reads every file of all databases of the server.': ['pg_tablespace_size'],
  'It reads files with the changed blocks of all databases of the server.': [
    'pg_available_wal_summaries',
    'pg_wal_summary_contents',
    'pg_get_wal_summarizer_state',
  ],
}

/** SQL that selects the functions of the list that exist in this version of Postgres and that PUBLIC may execute. */
export const openFunctionsSql = `
  select oid::regprocedure::text as signature from pg_catalog.pg_proc
  where pronamespace = 'pg_catalog'::regnamespace
    and proname = any (array[${Object.values(closedFunctions).flat().map(literal).join(', ')}]::name[])
    and exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)
  order by signature`

/** SQL that revokes the functions from PUBLIC in the current database. It writes nothing if they are revoked. */
export const closePublicFunctionsSql = `do $close$
declare
  item record;
begin
  for item in ${openFunctionsSql} loop
    execute format('revoke execute on function %s from public', item.signature);
  end loop;
end $close$`

/**
 * Revokes the functions from PUBLIC in the database of this connection, as superuser.
 * @returns the signatures that PUBLIC could execute
 */
export async function closePublicFunctions(database: Pick<ClientBase | Pool, 'query'>): Promise<string[]> {
  const { rows } = await database.query<{ signature: string }>(openFunctionsSql)
  if (rows.length > 0) await database.query(closePublicFunctionsSql)
  return rows.map(({ signature }) => signature)
}
