// A tenant's home as SQL: five roles and a schema. Pure; `home-databases.ts` and `dedicated-home.ts` run it.
//
//   t_<hex>_system  owns the schema, the service's tables and their functions; logs in only while a home is migrated
//   t_<hex>_owner   no login; owns what the tenant and its schemas make in the schema
//   t_<hex>         login of the runtime; owns nothing, bound by row-level security
//   t_<hex>_ddl     login for schema reloads; member of the owner, writes what a reload publishes
//   t_<hex>_admin   login of the tenant itself (`database_url`); member of the owner
//
// The role is the boundary: nothing is granted on any other schema. No login of the home is a member of
// the system role, and nothing that a tenant has made ever runs in it.
// After creation the control plane never reads or writes a home's tables as superuser, because a tenant's own triggers would
// run with the rights of whoever touches its tables. Changing who owns a table runs nothing.
import { homeRoles, loginKinds, pristineSchema } from './home-roles.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/** SQLSTATEs by which the scripts below say what they found. */
export const schemaExists = '42P06'
export const schemaMissing = '3F000'

/** Member of it may connect to the shared databases; it has no other right. */
export const tenantsGroup = 'tenantry_tenants'

/** SCRAM verifiers of the three logins. */
export interface HomeVerifiers {
  runtime: string
  ddl: string
  admin: string
}

interface HomeConnectionLimits {
  runtime: number
  ddl: number
  admin: number
}

/** How many sessions each login of a home may have at once in a shared database. */
export const homeConnectionLimits: HomeConnectionLimits = { runtime: 50, ddl: 4, admin: 10 }

/**
 * Creates what is missing of roles and schema, and sets passwords and settings anew; may be run again
 * at any point of an earlier, interrupted run. Runs as superuser of the home's database.
 */
export function createHomeSql(tenantId: string, verifiers: HomeVerifiers, limits: HomeConnectionLimits): string {
  return homeSql(tenantId, verifiers, limits, 'create schema if not exists')
}

/**
 * The same with the first migrations, in one transaction that fails (SQLSTATE 42P06) when the schema is there. As long
 * as nobody else has been in the schema, the superuser can work in it, in the system role.
 */
export function createNewHomeSql(
  tenantId: string,
  verifiers: HomeVerifiers,
  limits: HomeConnectionLimits,
  migrations: string,
): string {
  return [
    homeSql(tenantId, verifiers, limits, 'create schema'),
    `set local role ${identifier(homeRoles(tenantId).system)}`,
    migrations,
  ].join(';\n')
}

/**
 * The same for a home that has been in use: in one transaction that fails (SQLSTATE 3F000) when the schema is gone. What
 * belongs to the service is given to the system role.
 */
export function restoreHomeRolesSql(
  tenantId: string,
  verifiers: HomeVerifiers,
  limits: HomeConnectionLimits,
  parts: SystemParts,
): string {
  const schema = literal(identifier(tenantId))
  return [
    `do $do$ begin if to_regnamespace(${schema}) is null then ` +
      `raise exception using errcode = 'invalid_schema_name', message = 'the home is gone'; end if; end $do$`,
    createHomeSql(tenantId, verifiers, limits),
    adoptHomeSql(tenantId, parts),
  ].join(';\n')
}

/** Names of the service's tables and functions in every home. */
export interface SystemParts {
  tables: readonly string[]
  functions: readonly string[]
}

/**
 * Gives schema, tables and functions of the service to the system role, in a home that was made before there was one, or
 * that comes from a backup. As superuser; it changes nothing but names and owners, and so runs no code of the tenant's.
 * Something else with the name of such a table, a view for one, is renamed; the table is then missing, and repaired.
 */
export function adoptHomeSql(tenantId: string, { tables, functions }: SystemParts): string {
  const { system } = homeRoles(tenantId)
  const list = (names: readonly string[]) => `array[${names.map(literal).join(', ')}]::name[]`
  return [
    createRoleSql(system, 'nologin'),
    "set local search_path = ''",
    "set local lock_timeout = '2s'",
    `do $adopt$
declare
  home constant oid := to_regnamespace(${literal(identifier(tenantId))});
  system constant oid := to_regrole(${literal(identifier(system))});
  r record;
begin
  for r in
    select relname, relkind from pg_class
    where relnamespace = home and relkind in ('v', 'm', 'f', 'p') and relname = any (${list(tables)})
  loop
    execute format('alter %s ${identifier(tenantId)}.%I rename to %I',
      case r.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table' else 'table' end,
      r.relname, left(r.relname, 40) || '_' || substr(md5(random()::text), 1, 8));
  end loop;
  for r in
    select format('alter table %s no inherit %s', i.inhrelid::regclass, i.inhparent::regclass) as command
    from pg_inherits i join pg_class c on c.oid in (i.inhparent, i.inhrelid)
    where c.relnamespace = home and c.relkind = 'r' and c.relname = any (${list(tables)})
  loop
    execute r.command;
  end loop;
  -- A table that the tenant has renamed gives back the names of its indexes.
  for r in
    select i.relname from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
    where c.relnamespace = home and c.relowner <> system and c.relname <> all (${list(tables)})
      and i.relname ~ ${literal(`^(${tables.join('|')})_(pkey|[a-z_]+_key)$`)}
  loop
    execute format('alter index ${identifier(tenantId)}.%I rename to %I',
      r.relname, left(r.relname, 40) || '_' || substr(md5(random()::text), 1, 8));
  end loop;
  for r in
    select relname from pg_class
    where relnamespace = home and relkind = 'r' and relowner <> system and relname = any (${list(tables)})
    order by relname
  loop
    execute format('alter table ${identifier(tenantId)}.%I owner to ${identifier(system)}', r.relname);
  end loop;
  for r in
    select oid::regprocedure as signature from pg_proc
    where pronamespace = home and prokind = 'f' and proowner <> system and proname = any (${list(functions)})
  loop
    execute format('alter function %s security invoker', r.signature);
    execute format('alter function %s owner to ${identifier(system)}', r.signature);
  end loop;
end $adopt$`,
    ...schemaRightsSql(tenantId),
  ].join(';\n')
}

/** The schema belongs to the system role: whoever owns a schema may drop every table in it. */
function schemaRightsSql(tenantId: string): string[] {
  const { system, owner, runtime } = homeRoles(tenantId)
  return [
    `alter schema ${identifier(tenantId)} owner to ${identifier(system)}`,
    `grant usage, create on schema ${identifier(tenantId)} to ${identifier(owner)}`,
    `grant usage on schema ${identifier(tenantId)} to ${identifier(runtime)}`,
  ]
}

/** What the runtime may do with tables that the role makes in the schema, unless it is said otherwise there. */
export function grantDefaultsSql(tenantId: string, maker: 'system' | 'owner', schema = tenantId): string {
  const roles = homeRoles(tenantId)
  const defaults = `alter default privileges for role ${identifier(roles[maker])} in schema ${identifier(schema)} grant`
  return [
    `${defaults} select, insert, update, delete on tables to ${identifier(roles.runtime)}`,
    `${defaults} usage, select on sequences to ${identifier(roles.runtime)}`,
  ].join(';\n')
}

/**
 * Lets the system role log in with a password that is used once, and makes the schema in which a home is compared with a
 * pristine one. As superuser.
 */
export function openSystemLoginSql(tenantId: string, verifier: string): string {
  const system = identifier(homeRoles(tenantId).system)
  const pristine = identifier(pristineSchema(tenantId))
  return [
    `alter role ${system} reset all`,
    `alter role ${system} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls` +
      ` connection limit 2 password ${literal(verifier)}`,
    `grant ${identifier(tenantsGroup)} to ${system} with inherit true, set false`,
    `drop schema if exists ${pristine} cascade`,
    `create schema ${pristine} authorization ${system}`,
  ].join(';\n')
}

/** Takes login and password from the system role again, and removes the pristine schema that a repair compares with. */
export function closeSystemLoginSql(tenantId: string): string {
  return [
    `alter role ${identifier(homeRoles(tenantId).system)} with nologin password null`,
    `drop schema if exists ${identifier(pristineSchema(tenantId))} cascade`,
  ].join(';\n')
}

function homeSql(
  tenantId: string,
  verifiers: HomeVerifiers,
  limits: HomeConnectionLimits,
  createSchema: 'create schema' | 'create schema if not exists',
): string {
  const roles = homeRoles(tenantId)
  const owner = identifier(roles.owner)
  const schema = identifier(tenantId)
  return [
    createRoleSql(roles.system, 'nologin'),
    createRoleSql(roles.owner, 'nologin'),
    ...loginKinds.flatMap((kind) => {
      const role = identifier(roles[kind])
      return [
        createRoleSql(roles[kind], 'login'),
        `alter role ${role} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls` +
          ` connection limit ${limits[kind]} password ${literal(verifiers[kind])}`,
        `grant ${identifier(tenantsGroup)} to ${role} with inherit true, set false`,
        `alter role ${role} set search_path = ${schema}`,
      ]
    }),
    `grant pg_use_reserved_connections to ${identifier(roles.runtime)}, ${identifier(roles.ddl)}`,
    `grant ${owner} to ${identifier(roles.ddl)}, ${identifier(roles.admin)}`,
    // Whatever these two create belongs to the owner, so that every object of a home has one owner.
    `alter role ${identifier(roles.ddl)} set role = ${owner}`,
    `alter role ${identifier(roles.admin)} set role = ${owner}`,
    // The tenant's own login sees all of its rows; the policies ask for these two settings.
    `alter role ${identifier(roles.admin)} set app.tenant_id = ${literal(tenantId)}`,
    `alter role ${identifier(roles.admin)} set app.role = 'service_role'`,
    `${createSchema} ${schema} authorization ${identifier(roles.system)}`,
    ...schemaRightsSql(tenantId),
    grantDefaultsSql(tenantId, 'owner'),
    grantDefaultsSql(tenantId, 'system'),
  ].join(';\n')
}

/** Removes schema and roles; what is gone already is no error. Sessions of the roles must have been ended. */
export function dropHomeSql(tenantId: string): string {
  const roles = homeRoles(tenantId)
  return [
    `drop schema if exists ${identifier(tenantId)} cascade`,
    `drop schema if exists ${identifier(pristineSchema(tenantId))} cascade`,
    // What a tenant granted to others, or owns outside its schema, would block `drop role`.
    ...Object.values<string>({ ...roles }).map(
      (role) =>
        `do $do$ begin if to_regrole(${literal(identifier(role))}) is not null then` +
        ` execute ${literal(`drop owned by ${identifier(role)} cascade`)}; end if; end $do$`,
    ),
    ...[roles.admin, roles.ddl, roles.runtime, roles.owner, roles.system].map(
      (role) => `drop role if exists ${identifier(role)}`,
    ),
  ].join(';\n')
}

/** Ends every session of the home's logins. */
export function endSessionsSql(tenantId: string): string {
  const { runtime, ddl, admin, system } = homeRoles(tenantId)
  const logins = [runtime, ddl, admin, system].map(literal).join(', ')
  return `select pg_terminate_backend(pid) from pg_stat_activity where usename in (${logins})`
}

/**
 * Ends the tenants' session whose transaction is the oldest, when the queue of NOTIFY is more than half full; returns its
 * role, or no row. Postgres does not report which session holds the queue back: one that listens, and whose transaction is
 * older than what it has not taken. To measure the queue (`pg_notification_queue_usage`) also removes from it what every
 * listener has taken. A transaction younger than some seconds ends by itself.
 */
export const endOldestTransactionSql = `
  with holder as materialized (
    select pid, usename from pg_stat_activity
    where usesysid in (select member from pg_auth_members where roleid = to_regrole(${literal(tenantsGroup)}))
      and xact_start < now() - interval '5 seconds'
    order by xact_start limit 1)
  select usename as role, pg_terminate_backend(pid, 5000) from holder where pg_notification_queue_usage() > 0.5`

/** All functions that take advisory locks: one table of locks serves all tenants, and these fill it. */
const advisoryLocks = ['lock', 'xact_lock', 'lock_shared', 'xact_lock_shared'].flatMap((kind) =>
  ['pg_advisory_', 'pg_try_advisory_'].flatMap((prefix) =>
    ['bigint', 'integer, integer'].map((keys) => `${prefix}${kind}(${keys})`),
  ),
)

/**
 * Prepares a database to hold homes: the group role, and no rights for everybody. Run once, as superuser,
 * inside that database. Large objects and temporary tables would be room outside any quota, advisory locks everybody's.
 */
export function prepareSharedDatabaseSql(database: string): string {
  return [
    createRoleSql(tenantsGroup, 'nologin'),
    `revoke all on database ${identifier(database)} from public`,
    `grant connect on database ${identifier(database)} to ${identifier(tenantsGroup)}`,
    'revoke all on schema public from public',
    ...[
      ...advisoryLocks,
      'lo_create(oid)',
      'lo_creat(integer)',
      'lo_from_bytea(oid, bytea)',
      'lo_open(oid, integer)',
      'lo_put(oid, bigint, bytea)',
      'lowrite(integer, bytea)',
      'lo_truncate(integer, integer)',
      'lo_truncate64(integer, bigint)',
    ].map((signature) => `revoke execute on function pg_catalog.${signature} from public`),
  ].join(';\n')
}

/** Nobody logs in to the home any more. */
export function noLoginSql(tenantId: string): string {
  const { runtime, ddl, admin, system } = homeRoles(tenantId)
  return [runtime, ddl, admin, system]
    .map(
      (role) =>
        `do $do$ begin if to_regrole(${literal(identifier(role))}) is not null then ` +
        `alter role ${identifier(role)} nologin; end if; end $do$`,
    )
    .join(';\n')
}

/** `create role if not exists`, which Postgres lacks; safe when two do it at once. */
function createRoleSql(role: string, login: 'login' | 'nologin'): string {
  return (
    `do $do$ begin create role ${identifier(role)} ${login};` +
    ` exception when duplicate_object or unique_violation then null; end $do$`
  )
}
