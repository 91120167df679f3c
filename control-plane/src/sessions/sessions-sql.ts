// SQL that reads and ends the sessions of tenants. Pure.
//
// The statements of the watchdog call functions and read no shared catalog, so that they need no entry in the server's
// table of locks, which a tenant may have filled.

import { literal } from '../platform/identifiers.ts'

/** Restrictions and settings of the watchdog's connection. */
export const watchSettingsSql = `
  set timezone = 'UTC'; set statement_timeout = '5s'; set jit = off; set plan_cache_mode = force_generic_plan;
  set search_path = pg_catalog`

/** SQL of the server's version. */
export const versionSql = "select current_setting('server_version_num')::int as version"

/** The superuser who owns the server. The services' own sessions belong to it. */
const bootstrapSuperuser = 10

/** The version of Postgres that counts the write-ahead log of each backend. */
export const walVersion = 180_000

const usedSql = (wal: string) => `
  activity as materialized (
    select * from pg_stat_get_activity(null)
    where usesysid <> ${bootstrapSuperuser} and backend_type in ('client backend', 'parallel worker')),
  -- Locks of the fast path are in the backend's own memory.
  locks as materialized (
    select pid, count(*)::int as entries from pg_lock_status() where not fastpath and pid is not null group by pid),
  -- The names of temporary files contain the PID.
  files as materialized (
    select substring(name from '^pgsql_tmp([0-9]+)')::int as pid, sum(size)::float8 as bytes
    from pg_ls_tmpdir() group by 1),
  -- A parallel worker counts as its leader.
  used as materialized (
    select coalesce(leader_pid, pid) as pid,
      sum(substring(pg_read_file('/proc/' || pid || '/status', 0, 4096, true) from 'RssAnon:\\s+([0-9]+) kB')::float8 * 1024)
        as memory_bytes,
      sum(coalesce(files.bytes, 0)) as temporary_bytes, sum(coalesce(locks.entries, 0))::int as locks,
      sum(coalesce(${wal}, 0))::float8 as wal_bytes
    from activity left join files using (pid) left join locks using (pid) group by 1)`

/**
 * Returns SQL of one sample: a row for each session of a role other than the superuser.
 * @param version of the server, as `server_version_num`
 */
export const sampleSql = (version: number) => `
  with ${usedSql(version >= walVersion ? '(pg_stat_get_backend_wal(pid)).wal_bytes' : '0')}
  select pid, usesysid::int8::text as role, backend_start::text as started_at, state = 'active' as is_active,
    backend_xid is not null as has_written, coalesce(memory_bytes, 0) as memory_bytes, temporary_bytes, locks, wal_bytes,
    coalesce(extract(epoch from clock_timestamp() - xact_start) * 1000, 0)::float8 as transaction_ms,
    case when state like 'idle in transaction%'
      then extract(epoch from clock_timestamp() - state_change) * 1000 else 0 end::float8 as idle_ms,
    case when backend_xmin is not null then backend_xmin::text || ' ' || coalesce(xact_start::text, '') end as snapshot
  from activity join used using (pid) where leader_pid is null`

/** SQL of what the server's tenants share. */
export const serverSql = `
  select current_setting('max_locks_per_transaction')::int
      * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int) as lock_capacity,
    pg_notification_queue_usage()::float8 as notification_share`

/** SQL of a role's name. The lookup also caches the role for the statements that end its sessions. */
export const roleNameSql = 'select pg_get_userbyid($1::oid) as name'

/**
 * Returns SQL that cancels the statement of a session, or terminates the session. Its parameters identify it, because
 * another session may have its PID by now.
 */
export function endSessionSql(kind: 'cancel' | 'terminate'): string {
  return `select pg_${kind}_backend(pid) from pg_stat_get_activity($1::int) where backend_start = $2::timestamptz`
}

const inUtc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const namesOf = (roles: readonly string[]) => roles.map(literal).join(', ')

/** Returns SQL of the sessions of these roles as one JSON array, for operators. */
export function tenantSessionsSql(roles: readonly string[], withStatements: boolean): string {
  return `
  with ${usedSql('0')},
  sessions as (
    select pid, rolname as role, host(client_addr) as client_address, coalesce(application_name, '') as application_name,
      coalesce(state, 'unknown') as state, ${inUtc('backend_start')} as started_at,
      ${inUtc('xact_start')} as transaction_started_at, ${inUtc('query_start')} as statement_started_at,
      wait_event_type || ' ' || wait_event as wait, memory_bytes, temporary_bytes, locks
      ${withStatements ? ', query as statement' : ''}
    from activity join used using (pid) join pg_roles on pg_roles.oid = usesysid
    where leader_pid is null and rolname in (${namesOf(roles)}))
  select coalesce(json_agg(sessions order by started_at, pid), '[]') as result from sessions`
}

/** Returns SQL that terminates a session if it belongs to one of the roles. Its JSON value is whether it did. */
export function terminateOwnSql(roles: readonly string[], pid: number): string {
  return `
  select coalesce(to_json(bool_or(pg_terminate_backend(pid))), 'false') as result
  from pg_stat_get_activity(${pid}) join pg_roles on pg_roles.oid = usesysid
  where rolname in (${namesOf(roles)}) and backend_type = 'client backend'`
}
