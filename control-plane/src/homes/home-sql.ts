// A tenant's home as SQL: five roles and a schema. Pure; `home-databases.ts` and `dedicated-home.ts` run it.
//
//   t_<hex>_system  owns the schema, the service's tables and their functions; logs in only while a home is migrated
//   t_<hex>_owner   no login; owns the objects that the tenant and its schemas create in the schema
//   t_<hex>         login of the runtime; owns nothing, bound by row-level security
//   t_<hex>_ddl     login for schema reloads; member of the owner, writes what a reload publishes
//   t_<hex>_admin   login of the tenant itself (`database_url`); member of the owner
//
// The role is the boundary: nothing is granted on any other schema. No login of the home is a member of
// the system role, and no code of a tenant ever runs in it.
// After creation the control plane never reads or writes a home's tables as superuser, because a tenant's own triggers would
// run with the rights of the role that accesses its tables. A change of a table's owner runs no code.
import { homeRoles, loginKinds, pristineSchema } from './home-roles.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/** SQLSTATEs with which the scripts below report an existing or a missing schema. */
export const schemaExists = '42P06'
export const schemaMissing = '3F000'

/** Group role whose members may connect to the shared databases. It has no other right. */
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

/** Maximum number of concurrent sessions of each login of a home in a shared database. */
export const homeConnectionLimits: HomeConnectionLimits = { runtime: 50, ddl: 4, admin: 10 }

/**
 * Returns SQL that creates missing roles and a missing schema, and sets passwords and settings again. It may be
 * repeated after an interruption at any point. It runs as superuser in the home's database.
 */
export function createHomeSql(tenantId: string, verifiers: HomeVerifiers, limits: HomeConnectionLimits): string {
  return [homeSql(tenantId, verifiers, limits, 'create schema if not exists'), joinGroupsSql(tenantId)].join(';\n')
}

/**
 * Returns SQL that creates a home with its first migrations, in one transaction that fails (SQLSTATE 42P06) if the
 * schema exists. Before any tenant has used the schema, the superuser can work in it, in the system role.
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
    'reset role',
    joinGroupsSql(tenantId),
  ].join(';\n')
}

/**
 * Returns SQL that restores the roles of a home that has been in use, in one transaction that fails (SQLSTATE 3F000) if
 * the schema is gone. The service's objects become the system role's.
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
      `raise exception using errcode = 'invalid_schema_name', message = 'The home does not exist.'; end if; end $do$`,
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
 * Returns SQL that makes the system role the owner of the service's schema, tables and functions, in a home that is
 * older than that role or comes from a backup. It runs as superuser, changes only names and owners, and so executes no
 * code of the tenant. Another object with the name of such a table, for example a view, is renamed; the table is then
 * missing, and repaired.
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
  -- A table that the tenant has renamed releases the names of its indexes.
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

/**
 * Returns SQL that sets the rights on the schema. It belongs to the system role, because a schema's owner may drop
 * every table in it.
 */
export function schemaRightsSql(tenantId: string): string[] {
  const { system, owner, runtime } = homeRoles(tenantId)
  return [
    `alter schema ${identifier(tenantId)} owner to ${identifier(system)}`,
    `grant usage, create on schema ${identifier(tenantId)} to ${identifier(owner)}`,
    `grant usage on schema ${identifier(tenantId)} to ${identifier(runtime)}`,
  ]
}

/** Returns SQL that closes a schema to the home's own roles. Those of the service reach it as members of its owner. */
export function closeSchemaSql(tenantId: string, schema: string): string {
  const { owner, runtime } = homeRoles(tenantId)
  return `revoke all on schema ${identifier(schema)} from ${identifier(owner)}, ${identifier(runtime)}`
}

/** Returns SQL that sets the runtime's default privileges on tables that the role creates in the schema. */
export function grantDefaultsSql(tenantId: string, creator: 'system' | 'owner', schema = tenantId): string {
  const roles = homeRoles(tenantId)
  const defaults = `alter default privileges for role ${identifier(roles[creator])} in schema ${identifier(schema)} grant`
  return [
    `${defaults} select, insert, update, delete on tables to ${identifier(roles.runtime)}`,
    `${defaults} usage, select on sequences to ${identifier(roles.runtime)}`,
  ].join(';\n')
}

/**
 * Returns SQL that lets the system role log in with a one-time password, and creates the schema of the pristine home
 * for the comparison. It runs as superuser.
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

/** Returns SQL that revokes the system role's login and password, and drops the pristine schema. */
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
        // The tenant's own login may be closed, and stays so.
        `alter role ${role} with ${kind === 'admin' ? '' : 'login '}nosuperuser nocreatedb nocreaterole noreplication` +
          ` nobypassrls connection limit ${limits[kind]} password ${literal(verifiers[kind])}`,
        `alter role ${role} set search_path = ${schema}`,
      ]
    }),
    `grant ${owner} to ${identifier(roles.ddl)}, ${identifier(roles.admin)}`,
    // Objects that these two create belong to the owner, so that every object of a home has one owner.
    `alter role ${identifier(roles.ddl)} set role = ${owner}`,
    `alter role ${identifier(roles.admin)} set role = ${owner}`,
    // The tenant's own login sees all of its rows; the policies read these two settings.
    `alter role ${identifier(roles.admin)} set app.tenant_id = ${literal(tenantId)}`,
    `alter role ${identifier(roles.admin)} set app.role = 'service_role'`,
    `${createSchema} ${schema} authorization ${identifier(roles.system)}`,
    ...schemaRightsSql(tenantId),
    grantDefaultsSql(tenantId, 'owner'),
    grantDefaultsSql(tenantId, 'system'),
  ].join(';\n')
}

/**
 * Returns SQL that adds the logins to the roles of all tenants. Each grant locks its role until the end of the transaction,
 * so it is the last part of one: otherwise homes could be created only one after another.
 */
function joinGroupsSql(tenantId: string): string {
  const roles = homeRoles(tenantId)
  const join = (group: string, members: readonly string[]) =>
    // Code in these roles must not become the group itself.
    `grant ${group} to ${members.map(identifier).join(', ')} with inherit true, set false`
  return [
    join(
      identifier(tenantsGroup),
      loginKinds.map((kind) => roles[kind]),
    ),
    join('pg_use_reserved_connections', [roles.runtime, roles.ddl]),
  ].join(';\n')
}

/** Returns SQL that ends every session of the home's logins. */
export function endSessionsSql(tenantId: string): string {
  const { runtime, ddl, admin, system } = homeRoles(tenantId)
  const logins = [runtime, ddl, admin, system].map(literal).join(', ')
  return `select pg_terminate_backend(pid) from pg_stat_activity where usename in (${logins})`
}

/** Returns SQL that blocks the logins of a home. */
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

/** Returns SQL that lets a home's logins in again that `noLoginSql` has blocked. */
export function openLoginsSql(tenantId: string, verifiers: HomeVerifiers): string {
  const roles = homeRoles(tenantId)
  return loginKinds
    .map((login) => `alter role ${identifier(roles[login])} login password ${literal(verifiers[login])}`)
    .join(';\n')
}

/** Returns SQL for `create role if not exists`, which Postgres lacks. Concurrent calls are safe. */
export function createRoleSql(role: string, login: 'login' | 'nologin'): string {
  return (
    `do $do$ begin create role ${identifier(role)} ${login};` +
    ` exception when duplicate_object or unique_violation then null; end $do$`
  )
}
