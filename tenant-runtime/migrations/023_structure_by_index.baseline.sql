-- The structure of a home after all migrations up to this number, for new homes. Written by `npm run update:baseline`.
set local check_function_bodies = off;
select set_config('app.tenant_id', {{tenant_id}}, true), set_config('app.role', 'service_role', true);

-- Tables
create table {{schema}}.schemas (
  id uuid not null default gen_random_uuid(),
  name text not null,
  fields jsonb not null,
  rls_policy jsonb not null,
  created_at timestamp(3) with time zone not null default now(),
  updated_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  events boolean not null default false,
  constraint schemas_name_check CHECK ((name ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
  constraint schemas_fields_check CHECK ((jsonb_typeof(fields) = 'array'::text)),
  constraint schemas_rls_policy_check CHECK ((jsonb_typeof(rls_policy) = 'object'::text)),
  constraint schemas_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint schemas_pkey PRIMARY KEY (id),
  constraint schemas_name_key UNIQUE (name)
);
create table {{schema}}.event_log (
  seq bigint not null generated always as identity,
  xid xid8 not null default pg_current_xact_id(),
  type text not null,
  owner_id text,
  payload jsonb not null,
  created_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  readers text not null default 'owner'::text,
  counterpart jsonb,
  constraint event_log_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint event_log_readers_check CHECK ((readers = ANY (ARRAY['owner'::text, 'signed_in'::text, 'anyone'::text]))),
  constraint event_log_pkey PRIMARY KEY (seq)
);
create table {{schema}}.applied_schemas (
  name text not null,
  definition jsonb not null,
  published boolean not null default true,
  applied_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  constraint applied_schemas_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint applied_schemas_pkey PRIMARY KEY (name)
);
create table {{schema}}.storage_buckets (
  id uuid not null default gen_random_uuid(),
  name text not null,
  owner_id text,
  policy text not null default 'private'::text,
  config jsonb not null default '{"max_file_size": 0, "allowed_mime_types": []}'::jsonb,
  created_at timestamp(3) with time zone not null default now(),
  updated_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  signing_version bigint not null default 1,
  constraint storage_buckets_name_check CHECK ((((length(name) >= 3) AND (length(name) <= 63)) AND (name ~ '^[a-z0-9][a-z0-9-]*[a-z0-9]$'::text))),
  constraint storage_buckets_policy_check CHECK ((policy = ANY (ARRAY['public'::text, 'private'::text, 'authenticated'::text]))),
  constraint storage_buckets_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint storage_buckets_signing_version_check CHECK ((signing_version >= 1)),
  constraint storage_buckets_pkey PRIMARY KEY (id),
  constraint bucket_name_taken UNIQUE (name)
);
create table {{schema}}.storage_objects (
  id uuid not null default gen_random_uuid(),
  bucket_id uuid not null,
  path text collate "C" not null,
  blob_id uuid not null,
  size bigint not null,
  content_type text not null,
  etag text not null,
  cache_control text not null default 'max-age=3600'::text,
  metadata jsonb not null default '{}'::jsonb,
  owner_id text,
  created_at timestamp(3) with time zone not null default now(),
  updated_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  folder text collate "C" not null generated always as (translate("left"(path, (length(path) - length(split_part(path, '/'::text, '-1'::integer)))), '/'::text, chr(1))) stored,
  content_encoding text,
  constraint storage_objects_path_check CHECK (((octet_length(path) >= 1) AND (octet_length(path) <= 1024))),
  constraint storage_objects_size_check CHECK ((size >= 0)),
  constraint storage_objects_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint object_content_encoding CHECK ((content_encoding ~ '^[A-Za-z0-9_, -]{1,100}$'::text)),
  constraint storage_objects_pkey PRIMARY KEY (id),
  constraint storage_objects_blob_id_key UNIQUE (blob_id),
  constraint object_path_taken UNIQUE (bucket_id, path),
  constraint storage_objects_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES {{schema}}.storage_buckets(id) ON DELETE CASCADE
);
create table {{schema}}.blob_intents (
  blob_id uuid not null,
  reserved bigint not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint blob_intents_reserved_check CHECK ((reserved >= 0)),
  constraint blob_intents_pkey PRIMARY KEY (blob_id)
);
create table {{schema}}.blob_gc (
  blob_id uuid not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint blob_gc_pkey PRIMARY KEY (blob_id)
);
create table {{schema}}.storage_usage (
  one boolean not null default true,
  file_bytes bigint not null default 0,
  file_count bigint not null default 0,
  reserved_bytes bigint not null default 0,
  store_id uuid not null default gen_random_uuid(),
  file_byte_us numeric not null default 0,
  counted_at timestamp with time zone not null default clock_timestamp(),
  books uuid not null default gen_random_uuid(),
  books_began timestamp with time zone not null default clock_timestamp(),
  constraint storage_usage_one_check CHECK (one),
  constraint storage_usage_file_bytes_check CHECK ((file_bytes >= 0)),
  constraint storage_usage_file_count_check CHECK ((file_count >= 0)),
  constraint storage_usage_reserved_bytes_check CHECK ((reserved_bytes >= 0)),
  constraint storage_usage_file_byte_us_check CHECK ((file_byte_us >= (0)::numeric))
);
create table {{schema}}.storage_bucket_counters (
  bucket_id uuid not null,
  file_count bigint not null default 0,
  total_size bigint not null default 0,
  contents uuid not null default gen_random_uuid(),
  constraint storage_bucket_counters_file_count_check CHECK ((file_count >= 0)),
  constraint storage_bucket_counters_total_size_check CHECK ((total_size >= 0)),
  constraint storage_bucket_counters_pkey PRIMARY KEY (bucket_id),
  constraint storage_bucket_counters_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES {{schema}}.storage_buckets(id) ON DELETE CASCADE
);
create table {{schema}}.functions (
  id uuid not null default gen_random_uuid(),
  name text not null,
  description text not null default ''::text,
  trigger_type text not null,
  wasm_hash text not null,
  wasm_data bytea storage external not null,
  config jsonb not null,
  enabled boolean not null default true,
  created_at timestamp(3) with time zone not null default now(),
  updated_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  trigger_since timestamp(3) with time zone not null default now(),
  constraint functions_name_check CHECK ((name ~ '^[a-z][a-z0-9_-]{0,63}$'::text)),
  constraint functions_wasm_hash_check CHECK ((wasm_hash ~ '^[0-9a-f]{64}$'::text)),
  constraint functions_wasm_data_check CHECK ((octet_length(wasm_data) <= 10485760)),
  constraint functions_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint functions_pkey PRIMARY KEY (id),
  constraint function_name_taken UNIQUE (name)
);
create table {{schema}}.function_invocations (
  id text not null,
  function_id uuid not null,
  trigger text not null,
  status text not null default 'error'::text,
  duration_ms integer not null default 0,
  memory_peak bigint not null default 0,
  error_message text default 'interrupted'::text,
  user_id text,
  "timestamp" timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  cpu_ms double precision not null default 0,
  state text not null default 'interrupted'::text,
  egress_bytes bigint not null default 0,
  constraint function_invocations_trigger_check CHECK ((trigger = ANY (ARRAY['http'::text, 'database'::text, 'schedule'::text]))),
  constraint function_invocations_status_check CHECK ((status = ANY (ARRAY['success'::text, 'error'::text, 'timeout'::text]))),
  constraint function_invocations_duration_ms_check CHECK ((duration_ms >= 0)),
  constraint function_invocations_memory_peak_check CHECK ((memory_peak >= 0)),
  constraint function_invocations_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint function_invocations_cpu_ms_check CHECK ((cpu_ms >= (0)::double precision)),
  constraint invocation_state CHECK ((state = ANY (ARRAY['interrupted'::text, 'ended'::text]))),
  constraint invocation_egress CHECK ((egress_bytes >= 0)),
  constraint function_invocations_pkey PRIMARY KEY (id),
  constraint function_is_there FOREIGN KEY (function_id) REFERENCES {{schema}}.functions(id) ON DELETE CASCADE
) with (fillfactor=80);
create table {{schema}}.published_catalog (
  only_row boolean not null default true,
  document jsonb not null,
  version uuid not null,
  published_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  constraint published_catalog_only_row_check CHECK (only_row),
  constraint published_catalog_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint published_catalog_pkey PRIMARY KEY (only_row)
);
create table {{schema}}.function_deliveries (
  seq bigint not null generated always as identity,
  function_id uuid not null,
  payload jsonb not null,
  state text not null default 'waiting'::text,
  attempts integer not null default 0,
  next_attempt_at timestamp(3) with time zone,
  last_error text,
  created_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  constraint function_deliveries_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'dead'::text]))),
  constraint function_deliveries_attempts_check CHECK ((attempts >= 0)),
  constraint function_deliveries_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint function_deliveries_pkey PRIMARY KEY (seq)
);
create table {{schema}}.function_dispatcher (
  only_row boolean not null default true,
  holder text not null,
  until timestamp(3) with time zone not null,
  tenant_id text not null default {{tenant_id}},
  constraint function_dispatcher_only_row_check CHECK (only_row),
  constraint function_dispatcher_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint function_dispatcher_pkey PRIMARY KEY (only_row)
);
create table {{schema}}.function_schedule_runs (
  function_id uuid not null,
  planned_at timestamp(3) with time zone not null,
  invocation_id text,
  skipped text,
  created_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  constraint function_schedule_runs_skipped_check CHECK ((skipped = ANY (ARRAY['overlap'::text, 'missed'::text]))),
  constraint function_schedule_runs_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint function_schedule_runs_check CHECK (((invocation_id IS NULL) = (skipped IS NOT NULL))),
  constraint function_schedule_runs_pkey PRIMARY KEY (function_id, planned_at),
  constraint function_schedule_runs_function_id_fkey FOREIGN KEY (function_id) REFERENCES {{schema}}.functions(id) ON DELETE CASCADE
);
create table {{schema}}.function_webhook_ids (
  function_id uuid not null,
  message_id text not null,
  invocation_id text not null,
  received_at timestamp(3) with time zone not null default now(),
  tenant_id text not null default {{tenant_id}},
  constraint function_webhook_ids_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint function_webhook_ids_pkey PRIMARY KEY (function_id, message_id),
  constraint function_webhook_ids_function_id_fkey FOREIGN KEY (function_id) REFERENCES {{schema}}.functions(id) ON DELETE CASCADE
);
create table {{schema}}.function_logs (
  seq bigint not null generated always as identity,
  function_id uuid not null,
  invocation_id text not null,
  "timestamp" timestamp(3) with time zone not null,
  lines jsonb not null,
  bytes integer not null,
  tenant_id text not null default {{tenant_id}},
  constraint function_logs_lines_check CHECK ((jsonb_typeof(lines) = 'array'::text)),
  constraint function_logs_bytes_check CHECK ((bytes >= 0)),
  constraint function_logs_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint function_logs_pkey PRIMARY KEY (function_id, seq),
  constraint function_of_log_is_there FOREIGN KEY (function_id) REFERENCES {{schema}}.functions(id) ON DELETE CASCADE
);
create table {{schema}}.usage_hours (
  hour timestamp with time zone not null,
  meter text not null,
  value numeric not null,
  constraint usage_hours_value_check CHECK ((value >= (0)::numeric)),
  constraint usage_hours_meter_check CHECK (((meter = ANY (ARRAY['file_byte_us'::text, 'function_invocations'::text, 'function_milliseconds'::text, 'function_cpu_microseconds'::text, 'function_memory_kib_milliseconds'::text, 'function_egress_bytes'::text])) OR (meter ~ '^realtime_messages:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'::text))),
  constraint usage_hours_pkey PRIMARY KEY (hour, meter)
);
create table {{schema}}.event_log_gone (
  up_to bigint not null default 0,
  tenant_id text not null default {{tenant_id}},
  constraint event_log_gone_tenant_id_check CHECK ((tenant_id = {{tenant_id}})),
  constraint event_log_gone_pkey PRIMARY KEY (tenant_id)
);
create table {{schema}}.home_structure (
  kind text not null,
  name text not null,
  definition text not null,
  constraint home_structure_pkey PRIMARY KEY (kind, name)
);

-- Indexes
CREATE INDEX event_log_by_commit ON {{schema}}.event_log USING btree (xid, seq);
CREATE INDEX function_invocations_by_function ON {{schema}}.function_invocations USING btree (function_id, "timestamp" DESC);
CREATE INDEX storage_objects_by_folder ON {{schema}}.storage_objects USING btree (bucket_id, folder, path) INCLUDE (tenant_id, created_at, updated_at);
CREATE INDEX function_deliveries_in_order ON {{schema}}.function_deliveries USING btree (function_id, state, seq);
CREATE INDEX function_webhook_ids_by_age ON {{schema}}.function_webhook_ids USING btree (received_at);

-- First rows
insert into {{schema}}.storage_usage default values;
insert into {{schema}}.storage_buckets (name, policy) values ('system', 'private');
insert into {{schema}}.storage_bucket_counters (bucket_id) select id from {{schema}}.storage_buckets;
insert into {{schema}}.event_log_gone default values;

-- Functions
CREATE OR REPLACE FUNCTION {{schema}}.storage_bucket_made()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  insert into {{schema}}.storage_bucket_counters (bucket_id) values (new.id);
  return null;
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_object_checked()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_books_opened()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform 1 from {{schema}}.storage_usage for update;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_objects_changed()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.blob_intents_changed()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_bucket_contents_changed()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  new.contents := gen_random_uuid();
  return new;
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.refuse_change(reason text, count bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  raise exception using errcode = 'TNREF', message = reason, detail = count::text;
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_usage_counted()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.function_invocations_gone()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  insert into {{schema}}.usage_hours (hour, meter, value)
    select hour, meter, value from (
      select date_trunc('hour', timestamp, 'UTC') as hour, count(*) as invocations, sum(duration_ms) as milliseconds,
        sum(round(cpu_ms * 1000)) as cpu, sum(ceil(memory_peak / 1024.0) * duration_ms) as memory, sum(egress_bytes) as egress
      from old_rows, {{schema}}.storage_usage where timestamp >= books_began group by 1
    ) as gone, lateral (values ('function_invocations', invocations::numeric), ('function_milliseconds', milliseconds::numeric),
      ('function_cpu_microseconds', cpu::numeric), ('function_memory_kib_milliseconds', memory::numeric),
      ('function_egress_bytes', egress)) as sums (meter, value)
    on conflict (hour, meter) do update set value = usage_hours.value + excluded.value;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.home_structure_of(place name, tables name[])
 RETURNS TABLE(kind text, name text, definition text)
 LANGUAGE sql
 STABLE
 SET search_path TO ''
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
  with home as (
    select oid, nspname, nspowner, regexp_replace(nspname, '_pristine$', '') as id from pg_namespace where nspname = place
  ), described as (
    select c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.reloptions, home.nspowner
    from home join pg_depend e on e.refclassid = 'pg_namespace'::regclass and e.refobjid = home.oid and e.classid = 'pg_class'::regclass
      join pg_class c on c.oid = e.objid
    where c.relkind in ('r', 'p', 'v', 'm', 'f') and (c.relname = any (tables) or c.relowner = home.nspowner)
  ), columns as materialized (
    select t.relname, a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attidentity, a.attgenerated, a.attcollation, a.attacl
    from described t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  ), parts (kind, name, definition) as (
    select 'table', t.relname::text, concat_ws('|', t.relkind, t.relpersistence, t.relrowsecurity, t.relforcerowsecurity, array_to_string(t.reloptions, ','),
      t.relowner = t.nspowner, exists (select from pg_inherits where inhrelid = t.oid) or exists (select from pg_inherits where inhparent = t.oid))
    from described t
    union all
    select 'column', format('%s.%s', a.relname, a.attname), format('%s|%s|%s|%s|%s|%s', format_type(a.atttypid, a.atttypmod), a.attnotnull,
      a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid), (select collname from pg_collation where oid = a.attcollation and collname <> 'default'))
    from columns a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    union all
    select 'constraint', format('%s.%s', t.relname, n.conname), replace(pg_get_constraintdef(n.oid), ' NOT VALID', '')
    from described t join pg_constraint n on n.conrelid = t.oid where n.contype <> 'n'
    union all
    select 'index', format('%s.%s', t.relname, c.relname), concat_ws('|', pg_get_indexdef(c.oid), i.indisvalid)
    from described t join pg_index i on i.indrelid = t.oid join pg_class c on c.oid = i.indexrelid
    where not exists (select from pg_constraint n where n.conrelid = t.oid and n.conindid = i.indexrelid and n.contype in ('p', 'u', 'x'))
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
    select 'column privilege', format('%s.%s', a.relname, a.attname), a.attacl::text from columns a where a.attacl is not null
    union all
    select 'function', format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)), concat_ws('|', md5(replace(p.prosrc, home.nspname, '')),
      p.prosecdef, p.provolatile, p.prorettype::regtype, p.prolang, array_to_string(p.proconfig, ','), p.proacl is null)
    from home join pg_depend e on e.refclassid = 'pg_namespace'::regclass and e.refobjid = home.oid and e.classid = 'pg_proc'::regclass
      join pg_proc p on p.oid = e.objid
    where p.proowner = home.nspowner
  )
  select parts.kind, parts.name, regexp_replace(replace(replace(parts.definition, home.nspname, home.id), home.id, ''), '[()\s]', '', 'g') from home, parts
$function$;
CREATE OR REPLACE FUNCTION {{schema}}.home_problems()
 RETURNS SETOF text
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
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
$function$;
CREATE OR REPLACE FUNCTION {{schema}}.event_log_changes_of(collection text, key jsonb, before jsonb, after jsonb, owner_before text, owner_after text, readers_before text, readers_after text, more jsonb)
 RETURNS TABLE(type text, owner_id text, readers text, counterpart jsonb, payload jsonb)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_readers_of(policy text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case policy when 'public' then 'anyone' when 'authenticated' then 'signed_in' else 'owner' end
$function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_bucket_change_logged()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
 SET "TimeZone" TO 'UTC'
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.storage_object_change_logged()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
 SET "TimeZone" TO 'UTC'
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.realtime_table_change_logged()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
 SET "TimeZone" TO 'UTC'
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.realtime_key_of(whole jsonb, keys text[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when cardinality(keys) = 1 then whole -> keys[1] else (select jsonb_object_agg(name, whole -> name) from unnest(keys) as name) end
$function$;
CREATE OR REPLACE FUNCTION {{schema}}.realtime_follow(followed regclass, readers text DEFAULT NULL::text, owner_column text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
end $function$;
CREATE OR REPLACE FUNCTION {{schema}}.realtime_unfollow(followed regclass)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
 SET client_min_messages TO 'warning'
AS $function$
declare
  trigger_name text;
begin
  for trigger_name in
    select tgname from pg_trigger where tgrelid = followed and tgfoid = '{{schema}}.realtime_table_change_logged()'::regprocedure
  loop
    execute format('drop trigger %I on %s', trigger_name, followed);
  end loop;
end $function$;

-- Triggers
CREATE TRIGGER counters AFTER INSERT ON {{schema}}.storage_buckets FOR EACH ROW EXECUTE FUNCTION {{schema}}.storage_bucket_made();
CREATE TRIGGER rules BEFORE INSERT OR UPDATE OF size, content_type, bucket_id ON {{schema}}.storage_objects FOR EACH ROW EXECUTE FUNCTION {{schema}}.storage_object_checked();
CREATE TRIGGER books_opened BEFORE INSERT OR DELETE OR UPDATE ON {{schema}}.storage_objects FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_books_opened();
CREATE TRIGGER books_opened BEFORE INSERT OR DELETE ON {{schema}}.blob_intents FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_books_opened();
CREATE TRIGGER counted_insert AFTER INSERT ON {{schema}}.storage_objects REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_objects_changed();
CREATE TRIGGER counted_update AFTER UPDATE ON {{schema}}.storage_objects REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_objects_changed();
CREATE TRIGGER counted_delete AFTER DELETE ON {{schema}}.storage_objects REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_objects_changed();
CREATE TRIGGER reserved_insert AFTER INSERT ON {{schema}}.blob_intents REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.blob_intents_changed();
CREATE TRIGGER reserved_delete AFTER DELETE ON {{schema}}.blob_intents REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.blob_intents_changed();
CREATE TRIGGER contents BEFORE UPDATE ON {{schema}}.storage_bucket_counters FOR EACH ROW EXECUTE FUNCTION {{schema}}.storage_bucket_contents_changed();
CREATE TRIGGER counted BEFORE UPDATE ON {{schema}}.storage_usage FOR EACH ROW WHEN (((new.file_bytes <> old.file_bytes) OR (new.file_byte_us <> old.file_byte_us) OR (new.counted_at <> old.counted_at) OR (new.books <> old.books) OR (new.books_began <> old.books_began))) EXECUTE FUNCTION {{schema}}.storage_usage_counted();
CREATE TRIGGER gone AFTER DELETE ON {{schema}}.function_invocations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.function_invocations_gone();
CREATE TRIGGER events_insert AFTER INSERT ON {{schema}}.storage_buckets REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_bucket_change_logged();
CREATE TRIGGER events_update AFTER UPDATE ON {{schema}}.storage_buckets REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_bucket_change_logged();
CREATE TRIGGER events_delete AFTER DELETE ON {{schema}}.storage_buckets REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_bucket_change_logged();
CREATE TRIGGER events_insert AFTER INSERT ON {{schema}}.storage_objects REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_object_change_logged();
CREATE TRIGGER events_update AFTER UPDATE ON {{schema}}.storage_objects REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_object_change_logged();
CREATE TRIGGER events_delete AFTER DELETE ON {{schema}}.storage_objects REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.storage_object_change_logged();

-- Privileges
revoke delete, insert, update on {{schema}}.home_migrations, {{schema}}.applied_schemas, {{schema}}.published_catalog, {{schema}}.home_structure from {{runtime}};
grant select on {{schema}}.home_migrations, {{schema}}.applied_schemas, {{schema}}.storage_buckets, {{schema}}.storage_objects, {{schema}}.blob_intents, {{schema}}.blob_gc, {{schema}}.storage_usage, {{schema}}.storage_bucket_counters, {{schema}}.functions, {{schema}}.function_invocations, {{schema}}.published_catalog, {{schema}}.function_dispatcher, {{schema}}.function_schedule_runs, {{schema}}.function_webhook_ids, {{schema}}.function_logs, {{schema}}.usage_hours, {{schema}}.event_log_gone, {{schema}}.home_structure to {{owner}};
grant delete, insert, select, update on {{schema}}.schemas to {{owner}};
revoke update on {{schema}}.event_log, {{schema}}.function_logs from {{runtime}};
grant insert, select on {{schema}}.event_log, {{schema}}.function_deliveries to {{owner}};
grant delete, insert, update on {{schema}}.applied_schemas, {{schema}}.published_catalog to {{ddl}};
revoke delete on {{schema}}.usage_hours from {{runtime}};
revoke delete, insert on {{schema}}.event_log_gone from {{runtime}};

-- Policies
alter table {{schema}}.schemas enable row level security, force row level security;
alter table {{schema}}.event_log enable row level security, force row level security;
alter table {{schema}}.applied_schemas enable row level security, force row level security;
alter table {{schema}}.storage_buckets enable row level security, force row level security;
alter table {{schema}}.storage_objects enable row level security, force row level security;
alter table {{schema}}.functions enable row level security, force row level security;
alter table {{schema}}.function_invocations enable row level security, force row level security;
alter table {{schema}}.published_catalog enable row level security, force row level security;
alter table {{schema}}.function_deliveries enable row level security, force row level security;
alter table {{schema}}.function_dispatcher enable row level security, force row level security;
alter table {{schema}}.function_schedule_runs enable row level security, force row level security;
alter table {{schema}}.function_webhook_ids enable row level security, force row level security;
alter table {{schema}}.function_logs enable row level security, force row level security;
alter table {{schema}}.event_log_gone enable row level security, force row level security;
create policy service on {{schema}}.schemas for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy write on {{schema}}.event_log for insert with check ((tenant_id = {{tenant}}));
create policy read on {{schema}}.applied_schemas for select using ((tenant_id = {{tenant}}));
create policy reload on {{schema}}.applied_schemas for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy owner on {{schema}}.storage_buckets for all using (((tenant_id = {{tenant}}) AND (({{role}} = 'service_role'::text) OR (owner_id = {{user_id}}))));
create policy readers on {{schema}}.storage_buckets for select using (((tenant_id = {{tenant}}) AND ((policy = 'public'::text) OR ((policy = 'authenticated'::text) AND ({{role}} = 'authenticated'::text)))));
create policy readers on {{schema}}.storage_objects for select using (((tenant_id = {{tenant}}) AND (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE (b.id = storage_objects.bucket_id)))));
create policy service on {{schema}}.functions for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy service on {{schema}}.function_invocations for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy caller on {{schema}}.function_invocations for select using (((tenant_id = {{tenant}}) AND (user_id = {{user_id}})));
create policy insert_own on {{schema}}.storage_objects for insert with check (((tenant_id = {{tenant}}) AND (({{role}} = 'service_role'::text) OR (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE ((b.id = storage_objects.bucket_id) AND (b.owner_id = {{user_id}})))) OR ((owner_id = {{user_id}}) AND (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE ((b.id = storage_objects.bucket_id) AND (b.policy = 'authenticated'::text) AND ({{role}} = 'authenticated'::text))))))));
create policy update_own on {{schema}}.storage_objects for update using (((tenant_id = {{tenant}}) AND (({{role}} = 'service_role'::text) OR (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE ((b.id = storage_objects.bucket_id) AND (b.owner_id = {{user_id}})))) OR ((owner_id = {{user_id}}) AND (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE ((b.id = storage_objects.bucket_id) AND (b.policy = 'authenticated'::text) AND ({{role}} = 'authenticated'::text))))))));
create policy delete_own on {{schema}}.storage_objects for delete using (((tenant_id = {{tenant}}) AND (({{role}} = 'service_role'::text) OR (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE ((b.id = storage_objects.bucket_id) AND (b.owner_id = {{user_id}})))) OR ((owner_id = {{user_id}}) AND (EXISTS ( SELECT
   FROM {{schema}}.storage_buckets b
  WHERE ((b.id = storage_objects.bucket_id) AND (b.policy = 'authenticated'::text) AND ({{role}} = 'authenticated'::text))))))));
create policy read on {{schema}}.published_catalog for select using ((tenant_id = {{tenant}}));
create policy reload on {{schema}}.published_catalog for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy read on {{schema}}.event_log for select using (((tenant_id = {{tenant}}) AND (({{role}} = 'service_role'::text) OR (owner_id = {{user_id}}) OR (readers = 'anyone'::text) OR ((readers = 'signed_in'::text) AND ({{role}} = 'authenticated'::text)))));
create policy write on {{schema}}.function_deliveries for insert with check (((tenant_id = {{tenant}}) AND (pg_trigger_depth() > 0)));
create policy service on {{schema}}.function_deliveries for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy service on {{schema}}.function_dispatcher for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy service on {{schema}}.function_schedule_runs for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy service on {{schema}}.function_webhook_ids for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy service on {{schema}}.function_logs for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy service on {{schema}}.event_log_gone for all using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text)));
create policy "trim" on {{schema}}.event_log for delete using (((tenant_id = {{tenant}}) AND ({{role}} = 'service_role'::text) AND (seq <= ( SELECT event_log_gone.up_to
   FROM {{schema}}.event_log_gone))));
create policy retained on {{schema}}.function_invocations as restrictive for delete using (((tenant_id = {{tenant}}) AND ("timestamp" < (now() - '1 day'::interval))));
