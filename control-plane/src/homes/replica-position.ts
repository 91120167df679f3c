// A function by which a runtime finds out how much of the write-ahead log a member of a cluster has. Postgres shows the timeline of a
// replica to superusers only. Pure.
import { literal } from '../platform/identifiers.ts'
import { controlSchema, createControlSchemaSql } from './control-schema.ts'
import { tenantsGroup } from './home-sql.ts'

const name = `${controlSchema}.replica_position`

/**
 * The order of the statements matters. The received position becomes smaller when a replica begins to receive another timeline, but
 * only after it has replayed all of the former one. A replica creates the first file of a timeline before it stores or confirms
 * anything of it. Every member has a replication slot for each other one, which Patroni creates.
 */
const body = `
begin
  is_replica := pg_catalog.pg_is_in_recovery();
  received := pg_catalog.pg_last_wal_receive_lsn();
  replayed := pg_catalog.pg_last_wal_replay_lsn();
  timeline := (select max(pg_catalog.left(file, 8)) from pg_catalog.pg_ls_dir('pg_wal') as file where file ~ '^[0-9A-F]{24}$');
  members := 1 + (select count(*) from pg_catalog.pg_replication_slots where slot_type = 'physical' and not temporary);
  server := pg_catalog.format('%s:%s', pg_catalog.host(pg_catalog.inet_server_addr()), pg_catalog.inet_server_port());
end `

const hasFunctionSql = `exists (select from pg_catalog.pg_proc where oid = to_regprocedure('${name}()') and prosrc = ${literal(body)})`

/** SQL that lists, in a column `problem`, whether the function is missing. Any login may run it. */
export const missingPositionSql = `select 'the function ${name} is missing' as problem where not ${hasFunctionSql}`

/** SQL that creates the function in the current database, as superuser. It writes nothing if this version exists. */
export const replicaPositionSql = `do $position$
begin
  if not ${hasFunctionSql} then
    ${createControlSchemaSql}
    drop function if exists ${name}();
    create function ${name}(out is_replica boolean, out server text, out timeline text, out received pg_lsn, out replayed pg_lsn,
      out members integer)
      language plpgsql security definer set search_path = '' as ${literal(body)};
    revoke execute on function ${name}() from public;
  end if;
  if not has_schema_privilege('${tenantsGroup}', '${controlSchema}', 'usage')
    or not has_function_privilege('${tenantsGroup}', '${name}()', 'execute') then
    grant usage on schema ${controlSchema} to ${tenantsGroup};
    grant execute on function ${name}() to ${tenantsGroup};
  end if;
end $position$`
