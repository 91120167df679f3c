// The functions of Supabase's schema `realtime` that tenants call in SQL: `send`, `broadcast_changes` and `topic`. They are the
// same for all homes of a database, and run with the rights of their caller. Pure.
import { createHash } from 'node:crypto'
import { literal } from '../platform/identifiers.ts'

const schema = 'realtime'

/**
 * Calls the function of the caller's own home. The name of the home is that of the current role, which is a role of the home also
 * in a function with the rights of its owner. No code of a tenant can become a role of another home.
 */
const sendBody = `
declare
  home constant text := substring(current_user from '^t_[0-9a-f]{20}');
begin
  if to_regprocedure(format('%I.realtime_send(jsonb,text,text,boolean)', home)) is null then
    raise exception using errcode = 'undefined_function', message = 'The tenant has no function "realtime_send".',
      hint = 'Run the SQL of private channels, which is in the documentation of realtime channels.';
  end if;
  execute format('select %I.realtime_send($1, $2, $3, $4)', home) using payload, event, topic, private;
end `

const changesBody = `
begin
  perform ${schema}.send(
    jsonb_build_object('schema', table_schema, 'table', table_name, 'operation', operation,
      'record', to_jsonb(new), 'old_record', to_jsonb(old)),
    event_name, topic_name);
end `

const creationSql = `
  create or replace function ${schema}.send(payload jsonb, event text, topic text, private boolean default true) returns void
    language plpgsql set search_path = '' as ${literal(sendBody)};
  create or replace function ${schema}.broadcast_changes(topic_name text, event_name text, operation text, table_name text,
    table_schema text, new record, old record, level text default 'ROW') returns void
    language plpgsql set search_path = '' as ${literal(changesBody)};
  create or replace function ${schema}.topic() returns text language sql stable
    as 'select nullif(pg_catalog.current_setting(''realtime.topic'', true), '''')';
  revoke all on schema ${schema} from public;
  grant usage on schema ${schema} to public;`

const version = createHash('sha256').update(creationSql).digest('hex')

const hasSchemaSql = `exists (select from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner
  where n.nspname = '${schema}' and r.rolsuper and obj_description(n.oid, 'pg_namespace') = '${version}'
    and (select count(*) = 3 and every(proowner = n.nspowner) from pg_catalog.pg_proc where pronamespace = n.oid))`

/** SQL that lists, in a column `problem`, whether the functions are missing. Any login may run it. */
export const missingRealtimeSql = `select 'the functions of the schema ${schema} are missing' as problem where not ${hasSchemaSql}`

/** SQL that creates the functions in the current database, as superuser. It writes nothing if this version exists. */
export const realtimeFunctionsSql = `do $realtime$
begin
  if not ${hasSchemaSql} then
    if to_regnamespace('${schema}') is null then create schema ${schema}; end if;
    ${creationSql}
    comment on schema ${schema} is '${version}';
  end if;
end $realtime$`
