-- Books are kept once for a statement, not once for each row, so that many uploads can share one transaction. The tenant's
-- row is locked first by whoever changes objects or intents: of two who do, none holds what the other waits for.

drop trigger counters on storage_objects;
drop trigger reservation on blob_intents;
drop function storage_object_changed();
drop function blob_intent_changed();

create function storage_books_opened() returns trigger language plpgsql as $$
begin
  perform 1 from storage_usage for update;
  return null;
end $$;
create trigger books_opened before insert or update or delete on storage_objects
  for each statement execute function storage_books_opened();
create trigger books_opened before insert or delete on blob_intents
  for each statement execute function storage_books_opened();

create function storage_objects_changed() returns trigger language plpgsql as $$
declare
  files bigint;
  bytes bigint;
begin
  if tg_op <> 'INSERT' then
    select count(*), sum(size) into files, bytes from old_rows;
    if files > 0 then
      if tg_op = 'DELETE' then
        insert into blob_gc (blob_id) select blob_id from old_rows;
      else
        insert into blob_gc (blob_id) select blob_id from old_rows o where not exists (select from new_rows n where n.blob_id = o.blob_id);
      end if;
      update storage_usage set file_count = file_count - files, file_bytes = file_bytes - bytes;
      update storage_bucket_counters c set file_count = c.file_count - o.files, total_size = c.total_size - o.bytes
        from (select bucket_id, count(*) as files, sum(size) as bytes from old_rows group by bucket_id) o where c.bucket_id = o.bucket_id;
    end if;
  end if;
  if tg_op <> 'DELETE' then
    select count(*), sum(size) into files, bytes from new_rows;
    if files > 0 then
      update storage_usage set file_count = file_count + files, file_bytes = file_bytes + bytes;
      update storage_bucket_counters c set file_count = c.file_count + n.files, total_size = c.total_size + n.bytes
        from (select bucket_id, count(*) as files, sum(size) as bytes from new_rows group by bucket_id) n where c.bucket_id = n.bucket_id;
    end if;
  end if;
  return null;
end $$;
create trigger counted_insert after insert on storage_objects
  referencing new table as new_rows for each statement execute function storage_objects_changed();
create trigger counted_update after update on storage_objects
  referencing old table as old_rows new table as new_rows for each statement execute function storage_objects_changed();
create trigger counted_delete after delete on storage_objects
  referencing old table as old_rows for each statement execute function storage_objects_changed();

create function blob_intents_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    update storage_usage set reserved_bytes = reserved_bytes + (select coalesce(sum(reserved), 0) from new_rows);
  else
    update storage_usage set reserved_bytes = reserved_bytes - (select coalesce(sum(reserved), 0) from old_rows);
  end if;
  return null;
end $$;
create trigger reserved_insert after insert on blob_intents
  referencing new table as new_rows for each statement execute function blob_intents_changed();
create trigger reserved_delete after delete on blob_intents
  referencing old table as old_rows for each statement execute function blob_intents_changed();
