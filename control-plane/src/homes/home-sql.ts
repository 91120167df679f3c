// A tenant's home as SQL: four roles and a schema. Pure; `home-database.ts` runs it.
//
//   t_<hex>_owner   no login; owns the schema and everything in it
//   t_<hex>         login of the runtime; owns nothing, bound by row-level security
//   t_<hex>_ddl     login for schema reloads and home migrations; member of the owner
//   t_<hex>_admin   login of the tenant itself (`database_url`); member of the owner
//
// The role is the boundary (design, section 3): nothing is granted on any other schema.
// After creation the control plane never enters the schema as superuser, because a tenant's own
// triggers would run with the rights of whoever touches its tables.
import { identifier, literal } from './identifiers.ts'

/** SQLSTATEs by which the scripts below say what they found. */
export const schemaExists = '42P06'
export const schemaMissing = '3F000'

/** Member of it may connect to the shared databases; it has no other right. */
export const tenantsGroup = 'tenantry_tenants'

export interface HomeRoles {
  owner: string
  runtime: string
  ddl: string
  admin: string
}

export function homeRoles(tenantId: string): HomeRoles {
  return { owner: `${tenantId}_owner`, runtime: tenantId, ddl: `${tenantId}_ddl`, admin: `${tenantId}_admin` }
}

/** SCRAM verifiers of the three logins. */
export interface HomeVerifiers {
  runtime: string
  ddl: string
  admin: string
}

export interface HomeConnectionLimits {
  runtime: number
  ddl: number
  admin: number
}

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
 * as nobody else has been in the schema, the superuser can work in it, in the owner's role.
 */
export function createNewHomeSql(tenantId: string, verifiers: HomeVerifiers, limits: HomeConnectionLimits, migrations: string): string {
  return [
    homeSql(tenantId, verifiers, limits, 'create schema'),
    `set local role ${identifier(homeRoles(tenantId).owner)}`,
    `set local search_path = ${identifier(tenantId)}`,
    migrations,
  ].join(';\n')
}

/** The same for a home that has been in use: in one transaction that fails (SQLSTATE 3F000) when the schema is gone. */
export function mendHomeSql(tenantId: string, verifiers: HomeVerifiers, limits: HomeConnectionLimits): string {
  const schema = literal(identifier(tenantId))
  return [
    `do $do$ begin if to_regnamespace(${schema}) is null then raise exception using errcode = 'invalid_schema_name', message = 'the home is gone'; end if; end $do$`,
    createHomeSql(tenantId, verifiers, limits),
  ].join(';\n')
}

function homeSql(tenantId: string, verifiers: HomeVerifiers, limits: HomeConnectionLimits, createSchema: 'create schema' | 'create schema if not exists'): string {
  const roles = homeRoles(tenantId)
  const owner = identifier(roles.owner)
  const schema = identifier(tenantId)
  return [
    createRoleSql(roles.owner, 'nologin'),
    ...(['runtime', 'ddl', 'admin'] as const).flatMap((kind) => {
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
    `${createSchema} ${schema} authorization ${owner}`,
    `grant usage on schema ${schema} to ${identifier(roles.runtime)}`,
    `alter default privileges for role ${owner} in schema ${schema}` +
      ` grant select, insert, update, delete on tables to ${identifier(roles.runtime)}`,
    `alter default privileges for role ${owner} in schema ${schema}` +
      ` grant usage, select on sequences to ${identifier(roles.runtime)}`,
  ].join(';\n')
}

/** Removes schema and roles; what is gone already is no error. Sessions of the roles must have been ended. */
export function dropHomeSql(tenantId: string): string {
  const roles = homeRoles(tenantId)
  return [
    `drop schema if exists ${identifier(tenantId)} cascade`,
    // What a tenant granted to others, or owns outside its schema, would block `drop role`.
    ...Object.values<string>({ ...roles }).map(
      (role) =>
        `do $do$ begin if to_regrole(${literal(identifier(role))}) is not null then` +
        ` execute ${literal(`drop owned by ${identifier(role)} cascade`)}; end if; end $do$`,
    ),
    ...[roles.admin, roles.ddl, roles.runtime, roles.owner].map((role) => `drop role if exists ${identifier(role)}`),
  ].join(';\n')
}

/** Ends every session of the home's logins. */
export function endSessionsSql(tenantId: string): string {
  const logins = [tenantId, `${tenantId}_ddl`, `${tenantId}_admin`].map(literal).join(', ')
  return `select pg_terminate_backend(pid) from pg_stat_activity where usename in (${logins})`
}

/** All functions that take advisory locks: one table of locks serves all tenants, and these fill it. */
const advisoryLocks = ['lock', 'xact_lock', 'lock_shared', 'xact_lock_shared'].flatMap((kind) =>
  ['pg_advisory_', 'pg_try_advisory_'].flatMap((prefix) => ['bigint', 'integer, integer'].map((keys) => `${prefix}${kind}(${keys})`)),
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
      'lo_create(oid)', 'lo_creat(integer)', 'lo_from_bytea(oid, bytea)', 'lo_open(oid, integer)',
      'lo_put(oid, bigint, bytea)', 'lowrite(integer, bytea)', 'lo_truncate(integer, integer)',
      'lo_truncate64(integer, bigint)',
    ].map((signature) => `revoke execute on function pg_catalog.${signature} from public`),
  ].join(';\n')
}

/** Nobody logs in to the home any more. */
export function noLoginSql(tenantId: string): string {
  const { runtime, ddl, admin } = homeRoles(tenantId)
  return [runtime, ddl, admin]
    .map((role) => `do $do$ begin if to_regrole(${literal(identifier(role))}) is not null then alter role ${identifier(role)} nologin; end if; end $do$`)
    .join(';\n')
}

/** `create role if not exists`, which Postgres lacks; safe when two do it at once. */
function createRoleSql(role: string, login: 'login' | 'nologin'): string {
  return (
    `do $do$ begin create role ${identifier(role)} ${login};` +
    ` exception when duplicate_object or unique_violation then null; end $do$`
  )
}
