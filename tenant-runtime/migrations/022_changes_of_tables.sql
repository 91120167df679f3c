-- Changes of files, buckets and tables made with SQL are events of records (docs/realtime.md, docs/events.md).

-- A change of a record's readers is two events: a deletion for the former readers, an insertion for the new ones. Each has the
-- readers of the other here, so that those of both receive an update on realtime channels.
alter table if exists {{schema}}.event_log add column counterpart jsonb;

-- Returns the events of one changed row. `before` and `after` are the row as JSON, null where there is none. Each has an owner
-- and readers as in event_log. `more` are further members of the event. Postgres puts the function's text into the statement
-- that uses it, so that one statement writes the events of all rows. This needs a function without settings. Only functions with
-- an empty search path use it.
create or replace function {{schema}}.event_log_changes_of(
  collection text, key jsonb, before jsonb, after jsonb, owner_before text, owner_after text,
  readers_before text, readers_after text, more jsonb
) returns table (type text, owner_id text, readers text, counterpart jsonb, payload jsonb) language sql stable as $$
  select e.type, e.owner_id, e.readers, e.counterpart,
    jsonb_build_object('type', e.type, 'collection', collection, 'id', key, 'owner_id', e.owner_id,
      'timestamp', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) || more ||
    case when coalesce(pg_column_size(before), 0) + coalesce(pg_column_size(after), 0) <= 1048576
      then jsonb_build_object('record', e.record, 'old_record', e.old_record)
      else '{"record": null, "old_record": null, "too_large": true}' end
  from (values
    ('record.updated', owner_after, readers_after, null::jsonb, after, before,
      before is not null and after is not null and readers_before = readers_after and owner_before is not distinct from owner_after),
    ('record.deleted', owner_before, readers_before,
      case when after is not null then jsonb_build_object('owner_id', owner_after, 'readers', readers_after) end, null, before,
      before is not null and (after is null or readers_before <> readers_after or owner_before is distinct from owner_after)),
    ('record.inserted', owner_after, readers_after,
      case when before is not null then jsonb_build_object('owner_id', owner_before, 'readers', readers_before) end, after, null,
      after is not null and (before is null or readers_before <> readers_after or owner_before is distinct from owner_after))
  ) as e (type, owner_id, readers, counterpart, record, old_record, is_wanted)
  where e.is_wanted
$$;

-- The readers of a bucket, and of what is in it, apart from its owner and the service.
create or replace function {{schema}}.storage_readers_of(policy text) returns text language sql immutable as $$
  select case policy when 'public' then 'anyone' when 'authenticated' then 'signed_in' else 'owner' end
$$;

create or replace function {{schema}}.storage_bucket_change_logged() returns trigger language plpgsql
set search_path = '' set timezone = 'UTC' as $$
begin
  if tg_op = 'INSERT' then
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select r.*, to_jsonb(r) as whole from (select id, name, owner_id, policy, config, created_at, updated_at from new_rows) r offset 0) n
      cross join lateral {{schema}}.event_log_changes_of('storage_buckets', to_jsonb(n.id), null, n.whole, null, n.owner_id,
        null, {{schema}}.storage_readers_of(n.policy), jsonb_build_object('bucket', n.name)) e;
  elsif tg_op = 'DELETE' then
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select r.*, to_jsonb(r) as whole from (select id, name, owner_id, policy, config, created_at, updated_at from old_rows) r offset 0) o
      cross join lateral {{schema}}.event_log_changes_of('storage_buckets', to_jsonb(o.id), o.whole, null, o.owner_id, null,
        {{schema}}.storage_readers_of(o.policy), null, jsonb_build_object('bucket', o.name)) e;
  else
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select r.*, to_jsonb(r) as whole from (select id, name, owner_id, policy, config, created_at, updated_at from old_rows) r offset 0) o
      join (select r.*, to_jsonb(r) as whole from (select id, name, owner_id, policy, config, created_at, updated_at from new_rows) r offset 0) n using (id)
      cross join lateral {{schema}}.event_log_changes_of('storage_buckets', to_jsonb(n.id), o.whole, n.whole, o.owner_id, n.owner_id,
        {{schema}}.storage_readers_of(o.policy), {{schema}}.storage_readers_of(n.policy), jsonb_build_object('bucket', n.name)) e
    where o.whole <> n.whole;
  end if;
  return null;
end $$;

-- Those who may read a bucket may read its objects. A cascading deletion has deleted the bucket already, so that only the
-- service receives its events.
create or replace function {{schema}}.storage_object_change_logged() returns trigger language plpgsql
set search_path = '' set timezone = 'UTC' as $$
begin
  if tg_op = 'INSERT' then
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select r.id, r.bucket_id, to_jsonb(r) as whole from (
        select id, bucket_id, path, size, content_type, owner_id, etag, cache_control, metadata, created_at, updated_at from new_rows) r offset 0) n
      left join {{schema}}.storage_buckets b on b.id = n.bucket_id
      cross join lateral {{schema}}.event_log_changes_of('storage_objects', to_jsonb(n.id), null, n.whole, null, b.owner_id,
        null, {{schema}}.storage_readers_of(b.policy), jsonb_build_object('bucket', b.name)) e;
  elsif tg_op = 'DELETE' then
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select r.id, r.bucket_id, to_jsonb(r) as whole from (
        select id, bucket_id, path, size, content_type, owner_id, etag, cache_control, metadata, created_at, updated_at from old_rows) r offset 0) o
      left join {{schema}}.storage_buckets b on b.id = o.bucket_id
      cross join lateral {{schema}}.event_log_changes_of('storage_objects', to_jsonb(o.id), o.whole, null, b.owner_id, null,
        {{schema}}.storage_readers_of(b.policy), null, jsonb_build_object('bucket', b.name)) e;
  else
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select r.id, r.bucket_id, to_jsonb(r) as whole from (
        select id, bucket_id, path, size, content_type, owner_id, etag, cache_control, metadata, created_at, updated_at from old_rows) r offset 0) o
      join (select r.id, r.bucket_id, to_jsonb(r) as whole from (
        select id, bucket_id, path, size, content_type, owner_id, etag, cache_control, metadata, created_at, updated_at from new_rows) r offset 0) n using (id)
      left join {{schema}}.storage_buckets b on b.id = o.bucket_id
      left join {{schema}}.storage_buckets c on c.id = n.bucket_id
      cross join lateral {{schema}}.event_log_changes_of('storage_objects', to_jsonb(n.id), o.whole, n.whole, b.owner_id, c.owner_id,
        {{schema}}.storage_readers_of(b.policy), {{schema}}.storage_readers_of(c.policy), jsonb_build_object('bucket', c.name)) e
    where o.whole <> n.whole;
  end if;
  return null;
end $$;

-- A home that has lost one of the tables gets its triggers with the repair.
do $triggers$
declare
  changed record;
begin
  for changed in
    select t.name, format('for each statement execute function {{schema}}.%s()', t.routine) as call
    from (values ('storage_buckets', 'storage_bucket_change_logged'), ('storage_objects', 'storage_object_change_logged')) as t (name, routine)
    where to_regclass('{{schema}}.' || t.name) is not null
  loop
    execute format('create trigger events_insert after insert on {{schema}}.%s referencing new table as new_rows %s', changed.name, changed.call);
    execute format('create trigger events_update after update on {{schema}}.%s referencing old table as old_rows new table as new_rows %s',
      changed.name, changed.call);
    execute format('create trigger events_delete after delete on {{schema}}.%s referencing old table as old_rows %s', changed.name, changed.call);
  end loop;
end $triggers$;

-- Tables that a tenant has made with SQL. The arguments of their triggers are the readers, and the column of the owner.
create or replace function {{schema}}.realtime_table_change_logged() returns trigger language plpgsql
set search_path = '' set timezone = 'UTC' as $$
declare
  keys constant text[] := array(
    select a.attname::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
    where i.indrelid = tg_relid and i.indisprimary order by array_position(i.indkey::int2[], a.attnum));
  readers constant text := case tg_argv[0] when 'service' then 'owner' else tg_argv[0] end;
  owner_column constant text := nullif(tg_argv[1], '');
begin
  if keys = '{}' then
    raise exception using errcode = 'object_not_in_prerequisite_state',
      message = format('The changes of the table "%s" are events, and the table has no primary key.', tg_table_name),
      hint = format('Add a primary key, or run: select realtime_unfollow(%L)', tg_table_name);
  end if;
  if tg_op = 'INSERT' then
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select to_jsonb(r) as whole from new_rows r offset 0) n
      cross join lateral {{schema}}.event_log_changes_of(tg_table_name::text, {{schema}}.realtime_key_of(n.whole, keys), null, n.whole,
        null, n.whole ->> owner_column, null, readers, '{}') e;
  elsif tg_op = 'DELETE' then
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select to_jsonb(r) as whole from old_rows r offset 0) o
      cross join lateral {{schema}}.event_log_changes_of(tg_table_name::text, {{schema}}.realtime_key_of(o.whole, keys), o.whole, null,
        o.whole ->> owner_column, null, readers, null, '{}') e;
  else
    -- The owner of a record that others may read too does not change its readers.
    insert into {{schema}}.event_log (type, owner_id, readers, counterpart, payload) select e.*
    from (select w.whole, {{schema}}.realtime_key_of(w.whole, keys) as key from (select to_jsonb(r) as whole from old_rows r offset 0) w) o
      full join (select w.whole, {{schema}}.realtime_key_of(w.whole, keys) as key from (select to_jsonb(r) as whole from new_rows r offset 0) w) n
        on n.key = o.key
      cross join lateral {{schema}}.event_log_changes_of(tg_table_name::text, coalesce(n.key, o.key), o.whole, n.whole,
        case when n.whole is null or readers = 'owner' then o.whole ->> owner_column else n.whole ->> owner_column end,
        n.whole ->> owner_column, readers, readers, '{}') e;
  end if;
  return null;
end $$;

-- The primary key of a row: its value, or an object with several.
create or replace function {{schema}}.realtime_key_of(whole jsonb, keys text[]) returns jsonb language sql immutable as $$
  select case when cardinality(keys) = 1 then whole -> keys[1] else (select jsonb_object_agg(name, whole -> name) from unnest(keys) as name) end
$$;

-- Makes the changes of a table events, from the next commit on: `select realtime_follow('cards', owner_column => 'user_id')`.
-- It runs with the rights of its caller, who must own the table.
create or replace function {{schema}}.realtime_follow(followed regclass, readers text default null, owner_column text default null)
returns void language plpgsql set search_path = '' as $$
declare
  target record;
  columns text[];
  wanted constant text := coalesce(readers, case when owner_column is null then 'service' else 'owner' end);
  arguments constant text := format('(%L, %L)', wanted, coalesce(owner_column, ''));
begin
  select c.relname, c.relkind, c.relispartition, n.nspname, c.relowner = n.nspowner as is_service,
    exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary) as has_key into target
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = followed;
  if target.nspname <> (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = '{{schema}}.event_log'::regclass)
    or target.relkind not in ('r', 'p') then
    raise exception using errcode = 'wrong_object_type', message = format('"%s" is not a table of your own schema.', target.relname);
  end if;
  if target.is_service then
    raise exception using errcode = 'wrong_object_type', message = format('"%s" is a table of the service.', target.relname),
      hint = 'The changes of storage_objects and storage_buckets are events already.';
  end if;
  if exists (select from {{schema}}.applied_schemas s where s.name = target.relname and s.published) then
    raise exception using errcode = 'wrong_object_type', message = format('"%s" is the collection of a schema.', target.relname),
      hint = 'Set "events": true in its schema, and reload the schemas.';
  end if;
  if target.relispartition then
    raise exception using errcode = 'wrong_object_type', message = format('"%s" is a partition.', target.relname),
      hint = 'Follow the partitioned table.';
  end if;
  if not target.has_key then
    raise exception using errcode = 'object_not_in_prerequisite_state', message = format('The table "%s" has no primary key.', target.relname),
      hint = format('Add one, for example: alter table %I add primary key (id)', target.relname);
  end if;
  if wanted not in ('service', 'owner', 'signed_in', 'anyone') then
    raise exception using errcode = 'invalid_parameter_value',
      message = format('Invalid readers "%s". Allowed: service, owner, signed_in, anyone.', left(wanted, 100));
  end if;
  if wanted = 'owner' and owner_column is null then
    raise exception using errcode = 'invalid_parameter_value', message = 'The readers "owner" require owner_column.';
  end if;
  columns := array(select attname::text from pg_attribute where attrelid = followed and attnum > 0 and not attisdropped order by attnum);
  if owner_column <> all (columns) then
    raise exception using errcode = 'undefined_column',
      message = format('The table "%s" has no column "%s". It has: %s.', target.relname, left(owner_column, 100), array_to_string(columns, ', '));
  end if;
  perform {{schema}}.realtime_unfollow(followed);
  execute format('create trigger events_insert after insert on %s referencing new table as new_rows'
    ' for each statement execute function {{schema}}.realtime_table_change_logged%s', followed, arguments);
  execute format('create trigger events_update after update on %s referencing old table as old_rows new table as new_rows'
    ' for each statement execute function {{schema}}.realtime_table_change_logged%s', followed, arguments);
  execute format('create trigger events_delete after delete on %s referencing old table as old_rows'
    ' for each statement execute function {{schema}}.realtime_table_change_logged%s', followed, arguments);
end $$;

-- Ends that the changes of a table are events.
create or replace function {{schema}}.realtime_unfollow(followed regclass) returns void language plpgsql
set search_path = '' set client_min_messages = 'warning' as $$
declare
  trigger_name text;
begin
  for trigger_name in
    select tgname from pg_trigger where tgrelid = followed and tgfoid = '{{schema}}.realtime_table_change_logged()'::regprocedure
  loop
    execute format('drop trigger %I on %s', trigger_name, followed);
  end loop;
end $$;
