// A function by which a runtime finds out how much of the write-ahead log a member of a cluster has. Postgres shows the timeline of a
// replica to superusers only. Pure.
import { controlFunction } from './control-function.ts'

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

/** The function that reports the position of a member. */
export const replicaPosition = controlFunction({
  name: 'replica_position',
  body,
  create: (qualified, text) => `drop function if exists ${qualified}();
    create function ${qualified}(out is_replica boolean, out server text, out timeline text, out received pg_lsn, out replayed pg_lsn,
      out members integer)
      language plpgsql security definer set search_path = '' as ${text};`,
})
