// Statements by which a tenant might take the service's tables down, each list run in a session of its own.

export function attacks(id: string): Record<string, string[]> {
  const [system, owner] = [`"${id}_system"`, `"${id}_owner"`]
  const tables = ['usage_hours', 'storage_usage', 'storage_objects', 'function_invocations', 'home_structure', 'home_migrations', 'applied_schemas', 'event_log']
  return {
    ...Object.fromEntries(tables.map((table) => [`drop of ${table}`, [`drop table ${table}`, `drop table ${table} cascade`, `drop table if exists "${id}".${table}`, `truncate ${table}`, `truncate ${table} cascade`]])),
    'drop of parts': [
      'drop trigger counted on storage_usage', 'drop trigger gone on function_invocations', 'drop policy service on functions', 'drop index event_log_by_commit', 'drop function storage_usage_counted() cascade',
      'drop function home_problems()', 'drop sequence event_log_seq_seq cascade', 'drop type usage_hours cascade', 'drop routine refuse_change', `drop schema "${id}" cascade`, 'drop view usage_hours',
    ],
    'alter table': [
      'alter table usage_hours rename to gone', 'alter table usage_hours rename column value to worth', 'alter table usage_hours drop column value', 'alter table usage_hours add column more text', 'alter table usage_hours alter column value drop not null',
      'alter table usage_hours drop constraint usage_hours_pkey', 'alter table usage_hours add constraint no check (value < 1)', 'alter table storage_usage disable trigger counted', 'alter table storage_usage disable trigger all',
      'alter table functions disable row level security', 'alter table functions no force row level security', 'alter table usage_hours set (fillfactor = 10)', 'alter table usage_hours set unlogged', 'alter table usage_hours replica identity nothing',
      'alter table event_log alter column seq restart', 'alter table storage_objects cluster on object_path_taken', 'alter table storage_usage alter column books set default null', 'alter table usage_hours set schema public',
    ],
    'owners': [
      `alter table usage_hours owner to ${owner}`, `alter table usage_hours owner to current_user`, `alter schema "${id}" owner to ${owner}`, `alter schema "${id}" rename to gone`, `reassign owned by ${system} to ${owner}`, `reassign owned by ${owner} to ${system}`,
      `drop owned by ${system}`, `drop owned by ${system} cascade`, `alter function storage_usage_counted() owner to ${owner}`, `alter sequence event_log_seq_seq owner to ${owner}`, `create table t (); alter table t owner to ${system}`,
    ],
    'roles': [
      `set role ${system}; drop table usage_hours`, `set session authorization ${system}`, `grant ${system} to current_user`, `grant ${system} to ${owner}`, `alter role ${system} login password 'x'`, `alter role ${system} set search_path = x`, `alter role ${owner} superuser`,
      `do $$ begin execute 'set role ${system}'; execute 'drop table usage_hours'; end $$`, `select set_config('role', '${id}_system', false); drop table usage_hours`, 'set session_replication_role = replica',
    ],
    'rights': [
      'grant all on usage_hours to public', `grant all on all tables in schema "${id}" to ${owner}`, `revoke select on usage_hours from "${id}"`, `grant create on schema "${id}" to public`, `alter default privileges for role ${system} grant all on tables to public`,
      `alter default privileges for role ${owner} revoke all on tables from "${id}"`, `revoke all on schema "${id}" from "${id}"`, 'grant references on storage_objects to public', 'grant maintain on usage_hours to public',
    ],
    'triggers, rules and policies': [
      'create function no() returns trigger language plpgsql as $$ begin return null; end $$', 'create trigger no before insert on usage_hours for each row execute function no()', 'create trigger no before insert on event_log for each row execute function no()',
      'create constraint trigger no after insert on schemas for each row execute function no()', 'create rule no as on update to storage_usage do instead nothing', 'create rule no as on insert to event_log do instead nothing', 'create policy more on storage_objects using (true)',
      'alter policy service on functions using (true)', 'create or replace function storage_usage_counted() returns trigger language plpgsql as $$ begin return null; end $$', "create or replace function home_problems() returns setof text language sql as $$ select 'x' where false $$",
      'alter function storage_usage_counted() security definer', "alter function storage_usage_counted() set search_path = 'x'", 'alter trigger counted on storage_usage rename to no', 'create event trigger no on sql_drop execute function no()',
    ],
    'tables that take part': [
      'create table child () inherits (usage_hours)', 'create table part partition of usage_hours default', `create table near (id uuid references storage_objects)`, 'create table near2 (id uuid references functions on delete restrict)',
      'create table mine (like usage_hours including all); alter table mine inherit usage_hours', 'create index no on usage_hours (value)', 'create unique index no on event_log ((1))', 'create statistics no on hour, meter from usage_hours', 'create publication p for table usage_hours',
      'create view usage_hours as select 1', 'create or replace view storage_usage as select 1', 'create table usage_hours (a int)', 'create sequence event_log_seq_seq', 'create type usage_hours as (a int)', 'select 1 as a into usage_hours',
    ],
    'upkeep and comments': [
      "comment on table usage_hours is 'mine'", `comment on schema "${id}" is 'mine'`, 'cluster storage_objects using object_path_taken', 'reindex table usage_hours', `reindex schema "${id}"`, 'vacuum full usage_hours', 'analyze usage_hours',
      'lock table usage_hours in access exclusive mode', "security label on table usage_hours is 'x'", "select setval('event_log_seq_seq', 1000)", 'alter sequence event_log_seq_seq restart', 'refresh materialized view usage_hours',
    ],
    'rows': [
      'delete from usage_hours', 'update storage_usage set file_bytes = 0, file_byte_us = 0', "insert into home_migrations values (99, 'x')", 'delete from home_structure', 'update storage_objects set size = 1', 'delete from storage_buckets',
      'delete from functions', 'delete from event_log', "insert into published_catalog (document, version) values ('{}', gen_random_uuid())", "insert into applied_schemas (name, definition) values ('x', '{}')", 'delete from blob_gc', 'insert into blob_gc values (gen_random_uuid())',
      "merge into usage_hours u using storage_usage s on true when not matched then insert values (now(), 'file_byte_us', 1)", "copy usage_hours from program 'true'", "insert into storage_usage default values",
    ],
  }
}
