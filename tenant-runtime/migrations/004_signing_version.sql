-- What signed URLs of a bucket carry: raising it ends all that were made before.

alter table storage_buckets add column signing_version bigint not null default 1 check (signing_version >= 1);

-- The tenant's usage is locked before any bucket's counters, as uploads do that end their intent first: moves between
-- buckets and deletions would end in deadlocks with them otherwise.
create or replace function storage_object_changed() returns trigger language plpgsql as $$
begin
  update storage_usage set
    file_count = file_count + (tg_op <> 'DELETE')::int - (tg_op <> 'INSERT')::int,
    file_bytes = file_bytes + case when tg_op = 'DELETE' then 0 else new.size end - case when tg_op = 'INSERT' then 0 else old.size end;
  if tg_op <> 'INSERT' then
    if tg_op = 'DELETE' or old.blob_id <> new.blob_id then
      insert into blob_gc (blob_id) values (old.blob_id);
    end if;
    update storage_bucket_counters set file_count = file_count - 1, total_size = total_size - old.size where bucket_id = old.bucket_id;
  end if;
  if tg_op <> 'DELETE' then
    update storage_bucket_counters set file_count = file_count + 1, total_size = total_size + new.size where bucket_id = new.bucket_id;
  end if;
  return null;
end $$;
