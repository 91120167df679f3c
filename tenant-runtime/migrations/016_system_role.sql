-- The service's tables belong to a role of their own, so that the tenant's logins can neither drop nor alter them. From here
-- on migrations run with an empty search path and name the schema ({{schema}}): a function or an operator that the tenant has
-- made must never run with that role's rights.

-- The wanted structure of the home: what `home_structure_of` reports of a home without damage. The row `store` keeps the ID of
-- the store of files, so that a table that was lost can be made again for the same store.
create table {{schema}}.home_structure (
  kind        text not null,
  name        text not null,
  definition  text not null,
  primary key (kind, name)
);

-- Describes the service's tables and functions in a schema: the tables named, and all that belongs to the schema's owner.
-- Definitions are free of the tenant's ID, of parentheses and of spaces, which printing and parsing an expression again changes.
create function {{schema}}.home_structure_of(place name, tables name[])
returns table (kind text, name text, definition text) language sql stable set search_path = '' as $$
  with home as (
    select oid, nspname, nspowner, regexp_replace(nspname, '_pristine$', '') as id from pg_namespace where nspname = place
  ), described as (
    select c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.reloptions, home.nspowner
    from pg_class c join home on c.relnamespace = home.oid
    where c.relkind in ('r', 'p', 'v', 'm', 'f') and (c.relname = any (tables) or c.relowner = home.nspowner)
  ), parts (kind, name, definition) as (
    select 'table', t.relname::text, concat_ws('|', t.relkind, t.relpersistence, t.relrowsecurity, t.relforcerowsecurity, array_to_string(t.reloptions, ','),
      t.relowner = t.nspowner, exists (select from pg_inherits where t.oid in (inhrelid, inhparent)))
    from described t
    union all
    select 'column', format('%s.%s', t.relname, a.attname), format('%s|%s|%s|%s|%s|%s', format_type(a.atttypid, a.atttypmod), a.attnotnull,
      a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid), (select collname from pg_collation where oid = a.attcollation and collname <> 'default'))
    from described t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
    union all
    select 'constraint', format('%s.%s', t.relname, n.conname), replace(pg_get_constraintdef(n.oid), ' NOT VALID', '')
    from described t join pg_constraint n on n.conrelid = t.oid where n.contype <> 'n'
    union all
    select 'index', format('%s.%s', t.relname, c.relname), concat_ws('|', pg_get_indexdef(c.oid), i.indisvalid)
    from described t join pg_index i on i.indrelid = t.oid join pg_class c on c.oid = i.indexrelid
    where not exists (select from pg_constraint where conindid = i.indexrelid and contype in ('p', 'u', 'x'))
    union all
    select 'trigger', format('%s.%s', t.relname, g.tgname), concat_ws('|', pg_get_triggerdef(g.oid), g.tgenabled)
    from described t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal
    union all
    select 'policy', format('%s.%s', t.relname, p.polname),
      concat_ws('|', p.polcmd, p.polpermissive, p.polroles::regrole[]::text, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
    from described t join pg_policy p on p.polrelid = t.oid
    union all
    select 'rule', format('%s.%s', t.relname, r.rulename), pg_get_ruledef(r.oid) from described t join pg_rewrite r on r.ev_class = t.oid where t.relkind <> 'v'
    union all
    select 'privilege', format('%s.%s', t.relname, replace(coalesce(grantee.rolname, 'public'), home.id, '')),
      string_agg(e.privilege_type || case when e.is_grantable then '*' else '' end, ',' order by e.privilege_type)
    from home, described t, aclexplode(coalesce(t.relacl, acldefault('r', t.relowner))) e left join pg_roles grantee on grantee.oid = e.grantee
    group by t.relname, grantee.rolname, home.id
    union all
    select 'column privilege', format('%s.%s', t.relname, a.attname), a.attacl::text
    from described t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped where a.attacl is not null
    union all
    select 'function', format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)), concat_ws('|', md5(replace(p.prosrc, home.nspname, '')),
      p.prosecdef, p.provolatile, p.prorettype::regtype, p.prolang, array_to_string(p.proconfig, ','), p.proacl is null)
    from home join pg_proc p on p.pronamespace = home.oid where p.proowner = home.nspowner
  )
  select parts.kind, parts.name, regexp_replace(replace(replace(parts.definition, home.nspname, home.id), home.id, ''), '[()\s]', '', 'g') from home, parts
$$;

-- What of the service's tables and functions is missing, altered or too much, a line each; no rows: the home is whole. What
-- belongs to a missing table is not named again. A column that somebody added does no harm while it may be empty.
create function {{schema}}.home_problems() returns setof text language sql stable set search_path = '' as $$
  with home as (
    select n.oid, n.nspname, to_regrole(quote_ident(n.nspname || '_owner')) as owner, to_regrole(quote_ident(n.nspname)) as runtime
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = '{{schema}}.home_structure'::regclass
  ), wanted as (
    select * from {{schema}}.home_structure where kind <> 'store'
  ), found as (
    select f.* from home, {{schema}}.home_structure_of(home.nspname, array(select w.name::name from wanted w where w.kind = 'table')) f
  ), missing as (
    select w.name from wanted w where w.kind = 'table' and not exists (select from found f where f.kind = 'table' and f.name = w.name)
  ), problems (rank, problem) as (
    select 0, 'the record of its structure is empty' where not exists (select from wanted)
    union all
    select 1, 'the schema does not grant what it should' from home
    where not coalesce(has_schema_privilege(owner, oid, 'create') and has_schema_privilege(owner, oid, 'usage') and has_schema_privilege(runtime, oid, 'usage'), false)
    union all
    select case when coalesce(w.kind, f.kind) = 'table' then 2 else 3 end,
      format('the %s "%s" %s', coalesce(w.kind, f.kind), coalesce(w.name, f.name),
        case when f.kind is null then 'is missing' when w.kind is null then 'is not part of it' else 'is altered' end)
    from wanted w full join found f on (f.kind, f.name) = (w.kind, w.name)
    where w.definition is distinct from f.definition
      and (w.kind = 'table' or not exists (select from missing where name = split_part(w.name, '.', 1)))
      and not (w.kind is null and f.kind = 'column' and f.definition ~ '^[^|]*\|f\|\|\|\|')
      and not (w.kind is null and f.kind = 'privilege' and f.name like '%.\_system')
  )
  select problem from problems order by rank, problem
$$;

-- The functions of triggers again, now safe to run in the system role: a cascading delete runs them in it.
create or replace function {{schema}}.storage_bucket_made() returns trigger language plpgsql set search_path = '' as $$
begin
  insert into {{schema}}.storage_bucket_counters (bucket_id) values (new.id);
  return null;
end $$;

create or replace function {{schema}}.storage_object_checked() returns trigger language plpgsql set search_path = '' as $$
declare
  rules jsonb;
  most bigint;
begin
  select config into rules from {{schema}}.storage_buckets where id = new.bucket_id;
  if not found then
    raise exception 'the bucket is gone' using errcode = 'TS404';
  end if;
  most := (rules ->> 'max_file_size')::bigint;
  if most > 0 and new.size > most then
    raise exception 'larger than the bucket allows' using errcode = 'TS413';
  end if;
  if jsonb_array_length(rules -> 'allowed_mime_types') > 0 and not exists (
    select from jsonb_array_elements_text(rules -> 'allowed_mime_types') as allowed
    where allowed = new.content_type
       or (right(allowed, 2) = '/*' and starts_with(new.content_type, left(allowed, -1)))
  ) then
    raise exception 'a type that the bucket does not allow' using errcode = 'TS415';
  end if;
  return new;
end $$;

create or replace function {{schema}}.storage_books_opened() returns trigger language plpgsql set search_path = '' as $$
begin
  perform 1 from {{schema}}.storage_usage for update;
  return null;
end $$;

create or replace function {{schema}}.storage_objects_changed() returns trigger language plpgsql set search_path = '' as $$
declare
  files bigint;
  bytes bigint;
begin
  if tg_op <> 'INSERT' then
    select count(*), sum(size) into files, bytes from old_rows;
    if files > 0 then
      if tg_op = 'DELETE' then
        insert into {{schema}}.blob_gc (blob_id) select blob_id from old_rows;
      else
        insert into {{schema}}.blob_gc (blob_id) select blob_id from old_rows o where not exists (select from new_rows n where n.blob_id = o.blob_id);
      end if;
      update {{schema}}.storage_usage set file_count = file_count - files, file_bytes = file_bytes - bytes;
      update {{schema}}.storage_bucket_counters c set file_count = c.file_count - o.files, total_size = c.total_size - o.bytes
        from (select bucket_id, count(*) as files, sum(size) as bytes from old_rows group by bucket_id) o where c.bucket_id = o.bucket_id;
    end if;
  end if;
  if tg_op <> 'DELETE' then
    select count(*), sum(size) into files, bytes from new_rows;
    if files > 0 then
      update {{schema}}.storage_usage set file_count = file_count + files, file_bytes = file_bytes + bytes;
      update {{schema}}.storage_bucket_counters c set file_count = c.file_count + n.files, total_size = c.total_size + n.bytes
        from (select bucket_id, count(*) as files, sum(size) as bytes from new_rows group by bucket_id) n where c.bucket_id = n.bucket_id;
    end if;
  end if;
  return null;
end $$;

create or replace function {{schema}}.blob_intents_changed() returns trigger language plpgsql set search_path = '' as $$
declare
  bytes bigint;
begin
  if tg_op = 'INSERT' then
    select coalesce(sum(reserved), 0) into bytes from new_rows;
  else
    select -coalesce(sum(reserved), 0) into bytes from old_rows;
  end if;
  if bytes <> 0 then
    update {{schema}}.storage_usage set reserved_bytes = reserved_bytes + bytes;
  end if;
  return null;
end $$;

create or replace function {{schema}}.storage_bucket_contents_changed() returns trigger language plpgsql set search_path = '' as $$
begin
  new.contents := gen_random_uuid();
  return new;
end $$;

create or replace function {{schema}}.refuse_change(reason text, count bigint) returns boolean language plpgsql set search_path = '' as $$
begin
  raise exception using errcode = 'TNREF', message = reason, detail = count::text;
end $$;

create or replace function {{schema}}.storage_usage_counted() returns trigger language plpgsql set search_path = '' as $$
declare
  at timestamptz := greatest(clock_timestamp(), old.counted_at);
  first timestamptz := date_trunc('hour', old.counted_at, 'UTC') + interval '1 hour';
  last timestamptz := date_trunc('hour', at, 'UTC');
begin
  -- Nobody sets them.
  new.books := old.books;
  new.books_began := old.books_began;
  if last >= first then
    insert into {{schema}}.usage_hours (hour, meter, value)
      select hour, 'file_byte_us', old.file_byte_us + old.file_bytes * extract(epoch from hour - old.counted_at) * 1000000
      from (select first as hour union select last) as crossed
      on conflict do nothing;
  end if;
  new.file_byte_us := old.file_byte_us + old.file_bytes * extract(epoch from at - old.counted_at) * 1000000;
  new.counted_at := at;
  return new;
end $$;

create or replace function {{schema}}.function_invocations_gone() returns trigger language plpgsql set search_path = '' as $$
begin
  insert into {{schema}}.usage_hours (hour, meter, value)
    select hour, meter, value from (
      select date_trunc('hour', timestamp, 'UTC') as hour, count(*) as invocations, sum(duration_ms) as milliseconds,
        sum(round(cpu_ms * 1000)) as cpu, sum(ceil(memory_peak / 1024.0) * duration_ms) as memory
      from old_rows, {{schema}}.storage_usage where timestamp >= books_began group by 1
    ) as gone, lateral (values ('function_invocations', invocations::numeric), ('function_milliseconds', milliseconds::numeric),
      ('function_cpu_microseconds', cpu::numeric), ('function_memory_kib_milliseconds', memory::numeric)) as sums (meter, value)
    on conflict (hour, meter) do update set value = usage_hours.value + excluded.value;
  return null;
end $$;

-- Who may do what. The tenant's own SQL reads everything under the policies, writes `schemas`, and adds what the triggers of
-- its tables tell (docs/events.md, docs/functions.md). What a reload publishes is written by its own login. A home that has
-- lost a table gets these with the table.
do $rights$
declare
  r record;
begin
  for r in
    select relname, format('{{schema}}.%I', relname) as place from pg_class
    where relnamespace = (select relnamespace from pg_class where oid = '{{schema}}.home_structure'::regclass) and relkind = 'r'
      and pg_get_userbyid(relowner) = current_user
  loop
    execute format('grant select on %s to {{owner}}', r.place);
    case
      when r.relname in ('home_migrations', 'home_structure') then
        execute format('revoke insert, update, delete on %s from {{runtime}}', r.place);
        execute format('grant select on %s to {{runtime}}', r.place);
      when r.relname = 'schemas' then execute format('grant insert, update, delete on %s to {{owner}}', r.place);
      when r.relname in ('event_log', 'function_deliveries') then execute format('grant insert on %s to {{owner}}', r.place);
      when r.relname in ('applied_schemas', 'published_catalog') then execute format('grant insert, update, delete on %s to {{ddl}}', r.place);
      else null;
    end case;
  end loop;
end $rights$;
