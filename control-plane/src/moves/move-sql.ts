// The SQL of a move: what it creates on the server, and removes at its end. Pure. The superuser runs it, and no code of a
// tenant with it.
import { moveLeaseHolder } from '@tenantry/contract'
import {
  closeSchemaSql,
  homeRoles,
  replacedSchema,
  schemaRightsSql,
  structureTables,
  tenantsGroup,
} from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { markOf, namesOf, type Identity, type MoveJob, type Stream } from './move.ts'

/** The maximum size of a home, as a share of the log that a move may retain: others write to the log, too. */
const retainedShare = 0.8

/** Finds the first property of a home or server that a move does not support. `$1` is the schema. */
export const obstacleSql = `
  select what from (
    select 1, 'The setting wal_level of the Postgres server is ' || pg_catalog.current_setting('wal_level') ||
        '. A move requires logical.'
      where pg_catalog.current_setting('wal_level') <> 'logical'
    union all select 2, 'The table "' || relname || '" is unlogged, so that its changes cannot be followed.' from pg_catalog.pg_class
      where relnamespace = pg_catalog.to_regnamespace($1) and relkind = 'r' and relpersistence = 'u'
    union all select 3, 'The trigger "' || t.tgname || '" of the table "' || c.relname ||
        '" runs in replicas too. A move would run it twice.'
      from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid
      where c.relnamespace = pg_catalog.to_regnamespace($1) and not t.tgisinternal and t.tgenabled in ('A', 'R')
    union all select 4, 'The rule "' || w.rulename || '" of the table "' || c.relname ||
        '" runs in replicas too. A move would run it twice.'
      from pg_catalog.pg_rewrite w join pg_catalog.pg_class c on c.oid = w.ev_class
      where c.relnamespace = pg_catalog.to_regnamespace($1) and w.ev_enabled in ('A', 'R')
    union all select 5, 'The home has ' || size || ' bytes. The server adds about as many to its log while they are copied, of which ' ||
        'the setting max_slot_wal_keep_size lets a move retain ' || retained || '.'
      from (select pg_catalog.sum(pg_catalog.pg_total_relation_size(oid)) as size from pg_catalog.pg_class
        where relnamespace = pg_catalog.to_regnamespace($1) and relkind in ('r', 'm')) as home,
        (select setting::pg_catalog.int8 * 1048576 as retained from pg_catalog.pg_settings
        where name = 'max_slot_wal_keep_size' and setting::pg_catalog.int8 >= 0) as limits
      where size > ${retainedShare} * retained
  ) as found (position, what) order by position limit 1`

/** Whether the log does not identify the changed rows of the table `c`. */
const unidentified = `(c.relreplident = 'n' or c.relreplident = 'd' and not exists (
      select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary and i.indimmediate))`

/** Finds the tables whose changed rows have no key by which the copy could find them. `$1` is the schema. */
export const identitiesSql = `
  select c.relname as "table", c.relreplident as was from pg_catalog.pg_class c
  where c.relnamespace = pg_catalog.to_regnamespace($1) and c.relkind = 'r' and c.relname = any ($2)
    and ${unidentified}
  order by c.relname`

/** Returns SQL that publishes the tables of a home, in one transaction. */
export function publishSql(
  tenantId: string,
  { publication }: Stream,
  tables: readonly string[],
  identities: readonly Identity[],
  lockMilliseconds = 400,
): string {
  const named = (table: string) => `${identifier(tenantId)}.${identifier(table)}`
  return [
    `set local lock_timeout = ${lockMilliseconds}`,
    ...identities.map(({ table }) => `alter table ${named(table)} replica identity full`),
    `create publication ${identifier(publication)} for table ${tables.map((table) => `only ${named(table)}`).join(', ')}`,
  ].join(';\n')
}

/**
 * Finds a table of the home whose changes the publication does not have, or that has no key any more by which its rows could
 * be found. `$1` is the schema.
 */
export const unfollowedSql = `
  select c.relname from pg_catalog.pg_class c
  left join pg_catalog.pg_publication_rel r on r.prrelid = c.oid
    and r.prpubid = (select oid from pg_catalog.pg_publication where pubname = $2)
  where c.relnamespace = pg_catalog.to_regnamespace($1) and c.relkind = 'r'
    and c.relname not in (${structureTables.map(literal).join(', ')})
    and (r.oid is null or ${unidentified})
  limit 1`

/** Returns SQL that removes the publication, and restores the replica identities of the tables that still exist. */
export function unpublishSql({ publication }: Stream, schema: string, identities: readonly Identity[]): string {
  return [
    "set local lock_timeout = '400ms'",
    `drop publication if exists ${identifier(publication)}`,
    restoreIdentitiesSql(schema, identities),
  ].join(';\n')
}

/** Returns SQL that gives the tables of a schema that still exist the replica identities that they had before the move. */
export function restoreIdentitiesSql(schema: string, identities: readonly Identity[]): string {
  const statements = identities.map(({ table, was }) => {
    const name = `${identifier(schema)}.${identifier(table)}`
    return (
      `do $do$ begin if to_regclass(${literal(name)}) is not null then ` +
      `alter table ${name} replica identity ${was === 'n' ? 'nothing' : 'default'}; end if; end $do$`
    )
  })
  return statements.join(';\n')
}

/** Returns SQL that removes the slot, and ends the session that reads it. */
export function dropSlotSql({ slot: name }: Stream): string {
  const slot = literal(name)
  return `do $do$ begin
    perform pg_terminate_backend(active_pid, 5000) from pg_replication_slots where slot_name = ${slot} and active_pid is not null;
    perform pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = ${slot};
  end $do$`
}

/** Returns SQL that creates the login with which the copy is changed. It owns nothing and may reach no other home. */
export function createApplierSql(tenantId: string, verifier: string): string {
  const role = identifier(namesOf(tenantId).apply)
  return [
    `create role ${role} login bypassrls connection limit 2 password ${literal(verifier)}`,
    `grant ${identifier(tenantsGroup)} to ${role} with inherit true, set false`,
    `grant ${identifier(homeRoles(tenantId).owner)} to ${role} with inherit true, set false`,
    // The triggers have run at the source.
    `grant set on parameter session_replication_role to ${role}`,
    // The schema is closed to the home's own roles until the switch.
    `grant usage on schema ${identifier(tenantId)} to ${role}`,
  ].join(';\n')
}

/** Returns SQL that ends the sessions of a home's logins in one database. */
export function endSessionsSql(tenantId: string, database: string): string {
  const { runtime, ddl, admin } = homeRoles(tenantId)
  const logins = [runtime, ddl, admin].map(literal).join(', ')
  return `select pg_terminate_backend(pid) from pg_stat_activity where datname = ${literal(database)} and usename in (${logins})`
}

/** The name of the session that locks a home, as Postgres shows it. */
const lockingName = (tenantId: string) => `tenantry-move ${tenantId}`

/** Returns SQL that ends sessions that have locked a home. @returns for each of them whether it is left after some seconds */
export function endLockingSql(tenantId: string): string {
  return (
    `select not pg_terminate_backend(pid, 5000) as "isLeft" from pg_stat_activity ` +
    `where application_name = ${literal(lockingName(tenantId))} and pid <> pg_backend_pid()`
  )
}

/** Returns SQL that locks tables and sequences against changes, in a transaction that Postgres itself ends after a time. */
export function lockSql(
  tenantId: string,
  { tables, sequences }: { tables: readonly string[]; sequences: readonly string[] },
  milliseconds: number,
): string {
  const named = (name: string) => `${identifier(tenantId)}.${identifier(name)}`
  return [
    `set application_name = ${literal(lockingName(tenantId))}`,
    'begin',
    // Shorter than the time after which Postgres checks for deadlocks, so that no session of the tenant is ended for one.
    "set local lock_timeout = '400ms'",
    `set local idle_in_transaction_session_timeout = ${Math.ceil(milliseconds)}`,
    `lock table ${tables.map((table) => `only ${named(table)}`).join(', ')} in exclusive mode`,
    // A sequence has no lock of its own: this change of nothing makes `nextval` wait.
    `do $do$ declare r record; begin
       for r in select schemaname, sequencename, start_value from pg_sequences
         where schemaname = ${literal(tenantId)} and sequencename in (${['', ...sequences].map(literal).join(', ')})
       loop
         execute format('alter sequence %I.%I start with %s', r.schemaname, r.sequencename, r.start_value);
       end loop;
     end $do$`,
  ].join(';\n')
}

/** Returns SQL that takes the home out of its database, in the transaction that has locked it. */
export function renameSql(job: MoveJob): string {
  const left = identifier(replacedSchema(job.tenantId))
  return [
    `alter schema ${identifier(job.tenantId)} rename to ${left}`,
    `comment on schema ${left} is ${literal(markOf(job))}`,
    closeSchemaSql(job.tenantId, replacedSchema(job.tenantId)),
  ].join(';\n')
}

/** Returns SQL that opens the copy to the home's roles. */
export function openCopySql(tenantId: string): string {
  return schemaRightsSql(tenantId).join(';\n')
}

/** Returns SQL that takes the lease of the functions' triggers, so that no function begins by itself. */
export function takeLeaseSql(tenantId: string, seconds: number): string {
  const table = `${identifier(tenantId)}.function_dispatcher`
  return (
    `insert into ${table} (holder, until) values (${literal(moveLeaseHolder)}, now() + interval '${seconds} seconds') ` +
    'on conflict (only_row) do update set holder = excluded.holder, until = excluded.until'
  )
}

/** Returns SQL that releases the lease. */
export function releaseLeaseSql(tenantId: string): string {
  return `delete from ${identifier(tenantId)}.function_dispatcher where holder = ${literal(moveLeaseHolder)}`
}

/** Seconds in which a runtime records the end of a run. */
const recordSeconds = 10

/**
 * Returns a query for the number of functions that run for a change of a record, or at a planned time. The record of a run that
 * has lasted for longer than its timeout is from a runtime that was killed, after the seconds in which a busy one records the end.
 */
export function runningFunctionsSql(tenantId: string): string {
  return (
    `select count(*)::int as running from ${identifier(tenantId)}.function_invocations i ` +
    `join ${identifier(tenantId)}.functions f on f.id = i.function_id ` +
    `where i.state = 'interrupted' and i.trigger in ('database', 'schedule') ` +
    `and i.timestamp > now() - ((f.config ->> 'timeout')::float8 + ${recordSeconds}) * interval '1 second'`
  )
}
