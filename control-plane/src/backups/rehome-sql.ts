// SQL that prepares a place for a tenant's dump, and that gives the home of one tenant to another. Pure.
import { prepareSharedDatabaseSql, tenantsGroup, homeRoles } from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/**
 * On a Postgres of its own, for the tenant of the backup: its roles, of which only the ddl login can log in, and its
 * empty schema. There are no default privileges yet: they come with the dump, after the tables that were made without.
 */
export function foreignRolesSql(tenantId: string, ddlVerifier: string): string {
  const { system, owner, runtime, ddl, admin } = homeRoles(tenantId)
  return [
    ...[system, owner].map((role) => `create role ${identifier(role)} nologin`),
    ...[runtime, ddl, admin].map((role) => `create role ${identifier(role)} login`),
    `alter role ${identifier(ddl)} password ${literal(ddlVerifier)}`,
    `grant ${identifier(owner)} to ${identifier(ddl)}, ${identifier(admin)}`,
    `alter role ${identifier(ddl)} set role = ${identifier(owner)}`,
    `grant ${identifier(tenantsGroup)} to ${identifier(ddl)} with inherit true, set false`,
  ].join(';\n')
}

/** In the database that the dump goes into. */
export function emptySchemaSql(tenantId: string): string {
  const { owner, runtime } = homeRoles(tenantId)
  return [
    `create schema ${identifier(tenantId)} authorization ${identifier(owner)}`,
    `grant usage on schema ${identifier(tenantId)} to ${identifier(runtime)}`,
  ].join(';\n')
}

export function prepareDatabaseSql(database: string): string {
  return prepareSharedDatabaseSql(database)
}

/**
 * Makes the rows of the platform's tables the new tenant's: those whose column `tenant_id` is held to the old id. For the
 * ddl login, after the data and before triggers, indexes and policies are there. What the tenant itself has written,
 * texts and functions, stays to the letter.
 */
export function retagSql(oldId: string, newId: string): string {
  const [from, to] = [literal(oldId), literal(newId)]
  return `set search_path = '';
do $retag$
declare
  held record;
begin
  for held in
    select n.conname, format('%I.%I', s.nspname, c.relname) as place
    from pg_catalog.pg_constraint n
      join pg_catalog.pg_class c on c.oid = n.conrelid
      join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    where s.nspname = ${from} and n.contype = 'c' and c.relkind in ('r', 'p') and n.coninhcount = 0
      and pg_catalog.pg_get_constraintdef(n.oid) = format('CHECK ((tenant_id = %L::text))', ${from})
  loop
    execute format('alter table %s drop constraint %I, alter column tenant_id set default %L', held.place, held.conname, ${to});
    execute format('update %s set tenant_id = %L where tenant_id = %L', held.place, ${to}, ${from});
    execute format('alter table %s add constraint %I check (tenant_id = %L)', held.place, held.conname, ${to});
  end loop;
end $retag$`
}

/**
 * The books of use begin anew: what they say was counted where the backup was taken. For the login that owns them, before
 * triggers are there, or when they are. A backup of an older version, or of a home that lost them, has none.
 */
export function freshCountersSql(schema: string): string {
  const [usage, hours] = [`${identifier(schema)}.storage_usage`, `${identifier(schema)}.usage_hours`]
  const found = `pg_catalog.to_regclass(${literal(usage)})`
  return `set search_path = '';
do $books$
declare
  -- It lets nobody set the books.
  is_guarded boolean := exists (select from pg_catalog.pg_trigger where tgrelid = ${found} and tgname = 'counted' and tgenabled <> 'D');
begin
  if exists (select from pg_catalog.pg_attribute where attrelid = ${found} and attname = 'books') then
    if is_guarded then alter table ${usage} disable trigger counted; end if;
    update ${usage} set file_byte_us = 0, counted_at = pg_catalog.clock_timestamp(),
      books = pg_catalog.gen_random_uuid(), books_began = pg_catalog.clock_timestamp();
    if is_guarded then alter table ${usage} enable trigger counted; end if;
    if pg_catalog.to_regclass(${literal(hours)}) is not null then delete from ${hours}; end if;
  end if;
end $books$`
}

/** Numbers of transactions mean nothing on another Postgres: all events become those of one, in the order that they had. */
export function renumberEventsSql(tenantId: string): string {
  const log = `${identifier(tenantId)}.event_log`
  return `do $events$ begin
  if pg_catalog.to_regclass(${literal(log)}) is not null then update ${log} set xid = pg_catalog.pg_current_xact_id(); end if;
end $events$`
}

/** Schema and roles get the new tenant's names; whatever refers to them goes with them. As superuser, last of all. */
export function renameSql(oldId: string, newId: string): string {
  const [old, roles] = [homeRoles(oldId), homeRoles(newId)]
  return [
    `alter role ${identifier(old.ddl)} password null`,
    `alter schema ${identifier(oldId)} rename to ${identifier(newId)}`,
    ...(['system', 'owner', 'runtime', 'ddl', 'admin'] as const).map(
      (kind) => `alter role ${identifier(old[kind])} rename to ${identifier(roles[kind])}`,
    ),
  ].join(';\n')
}
