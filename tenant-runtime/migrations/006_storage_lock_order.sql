-- Counters are locked in one order, whatever changes an object: the tenant's first, then the buckets'. An upload ends its
-- intent before its object is counted, and so takes the tenant's first anyway; a delete that began with the bucket's
-- counters would wait for it, and be waited for.
create or replace function storage_object_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    update storage_usage set file_count = file_count + 1, file_bytes = file_bytes + new.size;
  elsif tg_op = 'UPDATE' then
    update storage_usage set file_bytes = file_bytes + new.size - old.size;
  else
    update storage_usage set file_count = file_count - 1, file_bytes = file_bytes - old.size;
  end if;
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
