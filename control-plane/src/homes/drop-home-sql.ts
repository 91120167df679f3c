// Removes a home in parts, so that no transaction holds more locks than the lock table of the server has room for. Pure.
// Postgres locks each object that it drops until the end of the transaction.
import {
  homeRoles,
  loaderRole,
  pristineSchema,
  readerRole,
  replacedSchema,
  restoredSchema,
  reverseSchema,
} from './home-roles.ts'
import { tenantsGroup } from './home-sql.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/** Returns the names of the schemas that belong to a home. */
export function schemasOf(tenantId: string): string[] {
  return [
    tenantId,
    pristineSchema(tenantId),
    restoredSchema(tenantId),
    replacedSchema(tenantId),
    reverseSchema(tenantId),
  ]
}

/** Objects of one class in the schema that the parameter `$1` names. An index finds them. */
const objectsOf = (catalog: string) => `
  from pg_depend d join ${catalog} o on o.oid = d.objid
    and d.classid = '${catalog}'::regclass and d.refclassid = 'pg_namespace'::regclass and d.refobjid = to_regnamespace($1)`

const relationKind = `case o.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table'
  when 'S' then 'sequence' else 'table' end`

/** Whether something other than the relation itself is defined by a query on it. */
const isQueried = `exists (select from pg_depend u join pg_rewrite r on r.oid = u.objid
  where u.classid = 'pg_rewrite'::regclass and u.refclassid = 'pg_class'::regclass and u.refobjid = o.oid and r.ev_class <> o.oid)`

/**
 * Queries for the next commands of a step. Each step is repeated until its query returns no row. The parameters are the
 * quoted name of a schema, and the maximum number of commands. The order prevents that a command drops many other
 * objects with its own: references between tables come first, views before what they query, partitions before their
 * table, and tables before their functions and types.
 */
export const partSteps: readonly string[] = [
  `select format('alter table %s drop constraint if exists %I cascade', o.oid::regclass, n.conname) as command
    ${objectsOf('pg_class')} join pg_constraint n on n.conrelid = o.oid and n.contype = 'f' and n.conparentid = 0
    where not exists (select from pg_inherits where inhparent = o.oid) limit $2`,
  `select format('drop %s if exists %s cascade', ${relationKind}, o.oid::regclass) as command
    ${objectsOf('pg_class')} and o.relkind in ('v', 'm') and not ${isQueried} limit $2`,
  `select format('drop %s if exists %s cascade', ${relationKind}, o.oid::regclass) as command
    ${objectsOf('pg_class')} and o.relkind in ('r', 'p', 'f') and not exists (select from pg_inherits where inhparent = o.oid) limit $2`,
  `select format('drop %s if exists %s cascade', ${relationKind}, o.oid::regclass) as command
    ${objectsOf('pg_class')} and o.relkind in ('v', 'm', 'S') limit $2`,
  `select format('drop routine if exists %s cascade', o.oid::regprocedure) as command ${objectsOf('pg_proc')} limit $2`,
  `select format('drop type if exists %s cascade', o.oid::regtype) as command ${objectsOf('pg_type')}
    and o.typtype in ('c', 'd', 'e', 'r') limit $2`,
]

/** Returns SQL that drops a schema from which the steps have removed what could be much. */
export function dropSchemaSql(schema: string): string {
  return `drop schema if exists ${identifier(schema)} cascade`
}

const roleList = (tenantId: string) => [
  ...Object.values<string>({ ...homeRoles(tenantId) }),
  readerRole(tenantId),
  loaderRole(tenantId),
]

const roleIds = (tenantId: string) =>
  `(select oid from pg_roles where rolname = any (array[${roleList(tenantId).map(literal).join(', ')}]::name[]))`

/** Returns a query for the databases in which anything refers to the home's roles. Other tenants may name them too. */
export function referringDatabasesSql(tenantId: string): string {
  return (
    `select distinct datname as name from pg_shdepend s join pg_database d on d.oid = s.dbid` +
    ` where s.refclassid = 'pg_authid'::regclass and s.refobjid in ${roleIds(tenantId)} and datallowconn`
  )
}

/**
 * Returns a query for the next commands that remove the home's roles from policies of the current database, at most
 * `$1`. A policy that names other roles too keeps them. A policy that names no other role is dropped: it applied to
 * these roles only, and without roles it would apply to PUBLIC. No command runs the policy's expression.
 */
export function policyCommandsSql(tenantId: string): string {
  return `
    select case when rest.roles is null then format('drop policy if exists %I on %s', p.polname, p.polrelid::regclass)
      else format('alter policy %I on %s to %s', p.polname, p.polrelid::regclass, rest.roles) end as command
    from pg_policy p, lateral (select string_agg(quote_ident(rolname), ', ') as roles from pg_roles
      where oid = any (p.polroles) and oid not in ${roleIds(tenantId)}) as rest
    where p.oid in (select objid from pg_shdepend
      where classid = 'pg_policy'::regclass and refclassid = 'pg_authid'::regclass and refobjid in ${roleIds(tenantId)}
        and dbid = (select oid from pg_database where datname = current_database()))
    limit $1`
}

/** Returns SQL that removes the roles' grants and remaining objects in the current database. */
export function dropOwnedSql(tenantId: string): string {
  return `do $do$ declare names text; begin
    select string_agg(quote_ident(rolname), ', ') into names from pg_roles where oid in ${roleIds(tenantId)};
    if names is not null then execute format('drop owned by %s cascade', names); end if; end $do$`
}

/** Returns SQL that drops the roles, of which some may be absent. */
export function dropRolesSql(tenantId: string): string {
  return `drop role if exists ${roleList(tenantId).map(identifier).join(', ')}`
}

/**
 * Returns SQL that waits and then ends the tenants' sessions that block another session, whichever tenant they belong
 * to. It ends no session of a service.
 * @param pid the session that is blocked
 */
export function endBlockersSql(pid: number): string {
  return `select pg_sleep(0.3); select pg_terminate_backend(pid) from pg_stat_activity
    where pid = any (pg_blocking_pids(${pid})) and usename !~ '_system$'
      and usesysid in (select member from pg_auth_members where roleid = to_regrole(${literal(tenantsGroup)}))`
}
