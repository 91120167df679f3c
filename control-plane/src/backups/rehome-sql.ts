// SQL that prepares a location for a tenant's dump, and that transfers a home from one tenant to another. Pure.
import { prepareSharedDatabaseSql, tenantsGroup, homeRoles } from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/**
 * Returns SQL that creates the roles of the backup's tenant on a new Postgres; only the ddl login can log in. The
 * default privileges come with the dump, after the tables that were created without them.
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

/** Returns SQL that creates the empty schema, for the database that the dump is restored into. */
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
 * Returns SQL that transfers the rows of the platform's tables to the new tenant: the tables whose column `tenant_id`
 * is checked to be the old id. The ddl login runs it after the data, and before triggers, indexes and policies. The
 * tenant's own texts and functions do not change.
 */
export function retagSql(oldId: string, newId: string): string {
  const [from, to] = [literal(oldId), literal(newId)]
  return `set search_path = '';
do $retag$
declare
  held record;
begin
  for held in
    select n.conname, format('%I.%I', s.nspname, c.relname) as relation
    from pg_catalog.pg_constraint n
      join pg_catalog.pg_class c on c.oid = n.conrelid
      join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    where s.nspname = ${from} and n.contype = 'c' and c.relkind in ('r', 'p') and n.coninhcount = 0
      and pg_catalog.pg_get_constraintdef(n.oid) = format('CHECK ((tenant_id = %L::text))', ${from})
  loop
    execute format('alter table %s drop constraint %I, alter column tenant_id set default %L', held.relation, held.conname, ${to});
    execute format('update %s set tenant_id = %L where tenant_id = %L', held.relation, ${to}, ${from});
    execute format('alter table %s add constraint %I check (tenant_id = %L)', held.relation, held.conname, ${to});
  end loop;
end $retag$`
}

/**
 * Returns SQL that resets the counters of use, because the backup's usage was counted where it was made. The login that
 * owns them runs it. Triggers may exist already. A backup of an older version, or of a home that lost its counters, has
 * none.
 */
export function freshCountersSql(schema: string): string {
  const [usage, hours] = [`${identifier(schema)}.storage_usage`, `${identifier(schema)}.usage_hours`]
  const found = `pg_catalog.to_regclass(${literal(usage)})`
  return `set search_path = '';
do $counters$
declare
  -- The trigger rejects changes of the counters.
  is_guarded boolean := exists (select from pg_catalog.pg_trigger where tgrelid = ${found} and tgname = 'counted' and tgenabled <> 'D');
begin
  if exists (select from pg_catalog.pg_attribute where attrelid = ${found} and attname = 'books') then
    if is_guarded then alter table ${usage} disable trigger counted; end if;
    update ${usage} set file_byte_us = 0, counted_at = pg_catalog.clock_timestamp(),
      books = pg_catalog.gen_random_uuid(), books_began = pg_catalog.clock_timestamp();
    if is_guarded then alter table ${usage} enable trigger counted; end if;
    if pg_catalog.to_regclass(${literal(hours)}) is not null then delete from ${hours}; end if;
  end if;
end $counters$`
}

/**
 * Returns SQL that assigns all events to one transaction, in their order: the transaction numbers mean nothing on
 * another Postgres.
 */
export function renumberEventsSql(tenantId: string): string {
  const log = `${identifier(tenantId)}.event_log`
  return `do $events$ begin
  if pg_catalog.to_regclass(${literal(log)}) is not null then update ${log} set xid = pg_catalog.pg_current_xact_id(); end if;
end $events$`
}

/**
 * Returns SQL that renames the schema and the roles to the new tenant's. References follow. It runs last, as superuser.
 */
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
