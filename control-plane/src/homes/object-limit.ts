// The limit of a home's relations and other objects, as an event trigger in each database of homes. Pure.
import { createHash } from 'node:crypto'
import { literal } from '../platform/identifiers.ts'
import { controlSchema, createControlSchemaSql } from './control-schema.ts'

/** Maximum number of a tenant's own relations in its home, and of its other objects, unless the operator sets another. */
export const defaultMaxObjects = 2_000

const triggerName = 'tenantry_limit_objects'
const startTriggerName = 'tenantry_limit_indexes'

/** Name by which errors of the limit are recognised: Postgres reports it as the name of a constraint. */
const objectLimit = 'objects_of_home'

/** Commands that can create a relation, a function or another object that belongs to a schema. */
const creatingCommands = [
  'ALTER MATERIALIZED VIEW',
  'ALTER TABLE',
  'CREATE AGGREGATE',
  'CREATE COLLATION',
  'CREATE CONVERSION',
  'CREATE DOMAIN',
  'CREATE FOREIGN TABLE',
  'CREATE FUNCTION',
  'CREATE INDEX',
  'CREATE MATERIALIZED VIEW',
  'CREATE OPERATOR',
  'CREATE OPERATOR CLASS',
  'CREATE OPERATOR FAMILY',
  'CREATE PROCEDURE',
  'CREATE SEQUENCE',
  'CREATE STATISTICS',
  'CREATE TABLE',
  'CREATE TABLE AS',
  'CREATE TEXT SEARCH CONFIGURATION',
  'CREATE TEXT SEARCH DICTIONARY',
  'CREATE TYPE',
  'CREATE VIEW',
  'SELECT INTO',
]

/**
 * Commands that create an index, in several transactions if it is concurrent. What they have created stays when they are
 * rejected at their end, so they are rejected at their beginning.
 */
const indexCommands = ['CREATE INDEX', 'REINDEX']

/**
 * Returns the bodies of the two functions. The trigger runs as superuser, so that a home's concurrent transactions can
 * wait for each other: none sees what another has created and not committed. It reads only catalogs, and finds a home's
 * objects by their owner, by an index. In other isolation levels than READ COMMITTED, a transaction does not see what
 * others have committed meanwhile, so the limit is a tenth.
 */
function bodies(maxObjects: number): { count: string; limit: string } {
  return {
    // Most homes are so far below the limit that their TOAST tables, which take longest, need not be counted.
    count: `
declare
  authid constant oid := 'pg_catalog.pg_authid'::regclass;
  class constant oid := 'pg_catalog.pg_class'::regclass;
  database constant oid := (select oid from pg_catalog.pg_database where datname = current_database());
  roles constant oid[] := array(select oid from pg_catalog.pg_roles
    where rolname = any (array[home, home || '_owner', home || '_ddl', home || '_admin']::name[]));
begin
  select count(*) filter (where classid = class), count(*) filter (where classid <> class) into relations, others
    from pg_catalog.pg_shdepend where refclassid = authid and refobjid = any (roles) and dbid = database and deptype = 'o';
  select count(*) + relations into relations from pg_catalog.pg_shdepend d join pg_catalog.pg_index i on i.indrelid = d.objid
    where d.refclassid = authid and d.refobjid = any (roles) and d.dbid = database and d.deptype = 'o' and d.classid = class;
  if relations * 3 > allowed then
    select count(*) * 2 + relations into relations from pg_catalog.pg_shdepend d join pg_catalog.pg_class c on c.oid = d.objid
      where d.refclassid = authid and d.refobjid = any (roles) and d.dbid = database and d.deptype = 'o' and d.classid = class
        and c.reltoastrelid <> 0;
  end if;
end `,
    limit: `
declare
  homes text[];
  home text;
  found record;
  allowed constant bigint := ${maxObjects}
    / case when current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then 1 else 10 end;
begin
  if (select rolsuper from pg_catalog.pg_roles where rolname = session_user) then return; end if;
  if tg_event = 'ddl_command_start' then homes := array[substring(session_user from '^t_[0-9a-f]{20}')];
  else homes := array(select distinct schema_name from pg_catalog.pg_event_trigger_ddl_commands());
  end if;
  foreach home in array homes loop
    continue when home is null or home !~ '^t_[0-9a-f]{20}$';
    -- The service's own role migrates the home.
    continue when session_user = home || '_system';
    perform pg_catalog.pg_advisory_xact_lock(81604378624 + home::regnamespace::oid::bigint);
    select * into found from ${controlSchema}.home_objects(home, allowed);
    if tg_event = 'ddl_command_start' then found.relations := found.relations + 1; end if;
    continue when found.relations <= allowed and found.others <= allowed;
    -- In a home with more already, tables can still be changed, as long as no index, TOAST table or sequence is new.
    continue when tg_event = 'ddl_command_end' and tg_tag like 'ALTER %' and not exists (
      select from pg_catalog.pg_class c
        left join pg_catalog.pg_index i on i.indrelid in (c.oid, c.reltoastrelid)
        left join pg_catalog.pg_sequence s on s.seqrelid = c.oid
      where c.relnamespace = home::regnamespace and least(age(i.xmin), age(s.xmin)) <= age(pg_catalog.pg_current_xact_id()::xid));
    raise exception using errcode = 'program_limit_exceeded', schema = home, constraint = ${literal(objectLimit)},
      message = case when found.relations > allowed
        then format('The home would have %s relations. Allowed: %s.', found.relations, allowed)
        else format('The home would have %s functions, types and other objects. Allowed: %s.', found.others, allowed) end,
      detail = 'Tables, indexes, sequences, views and TOAST relations count.',
      hint = 'Drop what the home does not need.' || case when allowed < ${maxObjects}
        then ' Use the isolation level READ COMMITTED, in which ${maxObjects} are allowed.' else '' end;
  end loop;
end `,
  }
}

/** Returns a condition that is true if the current database has this version of the limit. Any login may evaluate it. */
export function hasObjectLimitSql(maxObjects: number): string {
  return (
    `exists (select from pg_event_trigger e, pg_event_trigger s where e.evtname = ${literal(triggerName)}` +
    ` and s.evtname = ${literal(startTriggerName)} and e.evtenabled = 'A' and s.evtenabled = 'A'` +
    ` and (select every(rolsuper) from pg_roles where oid in (e.evtowner, s.evtowner))` +
    ` and obj_description(e.oid, 'pg_event_trigger') = ${literal(hashOf(creationSql(maxObjects)))})`
  )
}

/**
 * Returns SQL that installs the limit in the current database, as superuser. It writes nothing if this version is
 * installed.
 */
export function limitObjectsSql(maxObjects: number): string {
  const sql = creationSql(maxObjects)
  return `do $install$
begin
  if not ${hasObjectLimitSql(maxObjects)} then
    ${sql}
    comment on event trigger ${triggerName} is ${literal(hashOf(sql))};
  end if;
end $install$`
}

const hashOf = (sql: string) => createHash('sha256').update(sql).digest('hex')

function creationSql(maxObjects: number): string {
  const { count, limit } = bodies(maxObjects)
  return `${createControlSchemaSql}
    create or replace function ${controlSchema}.home_objects(home text, allowed bigint, out relations bigint, out others bigint)
      language plpgsql set search_path = '' as ${literal(count)};
    revoke execute on function ${controlSchema}.home_objects from public;
    create or replace function ${controlSchema}.limit_objects() returns event_trigger
      language plpgsql security definer set search_path = '' as ${literal(limit)};
    ${createTriggerSql(startTriggerName, 'ddl_command_start', indexCommands)}
    ${createTriggerSql(triggerName, 'ddl_command_end', creatingCommands)}`
}

function createTriggerSql(name: string, event: string, commands: readonly string[]): string {
  return `if exists (select from pg_event_trigger where evtname = ${literal(name)}) then drop event trigger ${name}; end if;
    create event trigger ${name} on ${event} when tag in (${commands.map(literal).join(', ')})
      execute function ${controlSchema}.limit_objects();
    alter event trigger ${name} enable always;`
}
