// A function by which a runtime finds out which transactions of its own home are running. A login sees no transaction of
// other logins, and Postgres' snapshots do not show whose the running transactions are. Pure.
import { literal } from '../platform/identifiers.ts'
import { controlSchema, createControlSchemaSql } from './control-schema.ts'
import { tenantsGroup } from './home-sql.ts'

const name = `${controlSchema}.running_writers`

/** The home is that of the session's login, which no code of a tenant can change. */
const body = `
  select coalesce(array_agg(backend_xid::text), '{}') from pg_catalog.pg_stat_activity
  where backend_xid is not null and usename = any (
    select (substring(session_user from '^t_[0-9a-f]{20}') || suffix)::name
    from unnest(array['', '_ddl', '_admin', '_system']) as suffix)`

const hasFunctionSql = `exists (select from pg_catalog.pg_proc where oid = to_regprocedure('${name}()') and prosrc = ${literal(body)})`

/** SQL that lists, in a column `problem`, whether the function is missing. Any login may run it. */
export const missingWritersSql = `select 'the function ${name} is missing' as problem where not ${hasFunctionSql}`

/** SQL that creates the function in the current database, as superuser. It writes nothing if this version exists. */
export const runningWritersSql = `do $writers$
begin
  if not ${hasFunctionSql} then
    ${createControlSchemaSql}
    create or replace function ${name}() returns text[] language sql security definer set search_path = ''
      as ${literal(body)};
    revoke execute on function ${name}() from public;
  end if;
  if not has_schema_privilege('${tenantsGroup}', '${controlSchema}', 'usage')
    or not has_function_privilege('${tenantsGroup}', '${name}()', 'execute') then
    grant usage on schema ${controlSchema} to ${tenantsGroup};
    grant execute on function ${name}() to ${tenantsGroup};
  end if;
end $writers$`
