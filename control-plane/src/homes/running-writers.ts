// A function by which a runtime finds out which transactions of its own home are running. A login sees no transaction of
// other logins, and Postgres' snapshots do not show whose the running transactions are. Pure.
import { controlFunction } from './control-function.ts'

/** The home is that of the session's login, which no code of a tenant can change. */
const body = `
  select coalesce(array_agg(backend_xid::text), '{}') from pg_catalog.pg_stat_activity
  where backend_xid is not null and usename = any (
    select (substring(session_user from '^t_[0-9a-f]{20}') || suffix)::name
    from unnest(array['', '_ddl', '_admin', '_system']) as suffix)`

/** The function that lists the running transactions of its caller's home. */
export const runningWriters = controlFunction({
  name: 'running_writers',
  body,
  create: (
    qualified,
    text,
  ) => `create or replace function ${qualified}() returns text[] language sql security definer set search_path = ''
      as ${text};`,
})
