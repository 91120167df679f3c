-- File storage (specification, sections 2.1 and 2.2): buckets, objects, and the bookkeeping of blobs.
-- Counters and collection of old blobs are triggers, so that they hold whoever writes.

create table storage_buckets (
  id          uuid primary key default gen_random_uuid(),
  name        text not null constraint bucket_name_taken unique
              check (length(name) between 3 and 63 and name ~ '^[a-z0-9][a-z0-9-]*[a-z0-9]$'),
  owner_id    text,
  policy      text not null default 'private' check (policy in ('public', 'private', 'authenticated')),
  config      jsonb not null default '{"allowed_mime_types": [], "max_file_size": 0}',
  created_at  timestamptz(3) not null default now(),
  updated_at  timestamptz(3) not null default now(),
  tenant_id   text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
alter table storage_buckets enable row level security, force row level security;
create policy owner on storage_buckets
  using (tenant_id = {{tenant}} and ({{role}} = 'service_role' or owner_id = {{user_id}}));
-- Who sees a bucket may read what is in it; listing narrows this further.
create policy readers on storage_buckets for select
  using (tenant_id = {{tenant}} and (policy = 'public' or (policy = 'authenticated' and {{role}} = 'authenticated')));

create table storage_objects (
  id            uuid primary key default gen_random_uuid(),
  bucket_id     uuid not null references storage_buckets on delete cascade,
  path          text collate "C" not null check (octet_length(path) between 1 and 1024),
  blob_id       uuid not null unique,
  size          bigint not null check (size >= 0),
  content_type  text not null,
  etag          text not null,
  cache_control text not null default 'max-age=3600',
  metadata      jsonb not null default '{}',
  owner_id      text,
  created_at    timestamptz(3) not null default now(),
  updated_at    timestamptz(3) not null default now(),
  tenant_id     text not null default {{tenant_id}} check (tenant_id = {{tenant_id}}),
  constraint object_path_taken unique (bucket_id, path)
);
alter table storage_objects enable row level security, force row level security;
create policy readers on storage_objects for select
  using (tenant_id = {{tenant}} and exists (select from storage_buckets b where b.id = bucket_id));
-- A bucket's owner does everything in it; in an `authenticated` bucket each signed-in user manages the own objects.
create policy owner on storage_objects
  using (tenant_id = {{tenant}} and (
    {{role}} = 'service_role'
    or exists (select from storage_buckets b where b.id = bucket_id and b.owner_id = {{user_id}})
    or (owner_id = {{user_id}}
      and exists (select from storage_buckets b where b.id = bucket_id and b.policy = 'authenticated' and {{role}} = 'authenticated'))));

-- Blobs that are being written, with the bytes reserved for them; blobs that nothing refers to any more.
create table blob_intents (
  blob_id     uuid primary key,
  reserved    bigint not null check (reserved >= 0),
  created_at  timestamptz(3) not null default now()
);
create table blob_gc (
  blob_id     uuid primary key,
  created_at  timestamptz(3) not null default now()
);
create table storage_usage (
  one             boolean not null default true check (one),
  file_bytes      bigint not null default 0 check (file_bytes >= 0),
  file_count      bigint not null default 0 check (file_count >= 0),
  reserved_bytes  bigint not null default 0 check (reserved_bytes >= 0),
  -- The store that belongs to this database: nothing is swept in another one.
  store_id        uuid not null default gen_random_uuid()
);
create table storage_bucket_counters (
  bucket_id   uuid primary key references storage_buckets on delete cascade,
  file_count  bigint not null default 0 check (file_count >= 0),
  total_size  bigint not null default 0 check (total_size >= 0)
);
insert into storage_usage default values;

create function storage_bucket_made() returns trigger language plpgsql as $$
begin
  insert into storage_bucket_counters (bucket_id) values (new.id);
  return null;
end $$;
create trigger counters after insert on storage_buckets for each row execute function storage_bucket_made();

-- The bucket's rules hold at the moment of the commit too, whatever was checked before the bytes came.
create function storage_object_checked() returns trigger language plpgsql as $$
declare
  rules jsonb;
  most bigint;
begin
  select config into rules from storage_buckets where id = new.bucket_id;
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
create trigger rules before insert or update of size, content_type, bucket_id on storage_objects
  for each row execute function storage_object_checked();

create function storage_object_changed() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    if tg_op = 'DELETE' or old.blob_id <> new.blob_id then
      insert into blob_gc (blob_id) values (old.blob_id);
    end if;
    update storage_bucket_counters set file_count = file_count - 1, total_size = total_size - old.size where bucket_id = old.bucket_id;
    update storage_usage set file_count = file_count - 1, file_bytes = file_bytes - old.size;
  end if;
  if tg_op <> 'DELETE' then
    update storage_bucket_counters set file_count = file_count + 1, total_size = total_size + new.size where bucket_id = new.bucket_id;
    update storage_usage set file_count = file_count + 1, file_bytes = file_bytes + new.size;
  end if;
  return null;
end $$;
create trigger counters after insert or delete or update of blob_id, size, bucket_id on storage_objects
  for each row execute function storage_object_changed();

create function blob_intent_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    update storage_usage set reserved_bytes = reserved_bytes + new.reserved;
  else
    update storage_usage set reserved_bytes = reserved_bytes - old.reserved;
  end if;
  return null;
end $$;
create trigger reservation after insert or delete on blob_intents for each row execute function blob_intent_changed();

-- Without an owner of its own; a bucket that every tenant finds.
select set_config('app.tenant_id', {{tenant_id}}, true), set_config('app.role', 'service_role', true);
insert into storage_buckets (name, policy) values ('system', 'private');
