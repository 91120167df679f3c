-- Of intents that reserve nothing the tenant's row tells nothing: it is left alone.
create or replace function blob_intents_changed() returns trigger language plpgsql as $$
declare
  bytes bigint;
begin
  if tg_op = 'INSERT' then
    select coalesce(sum(reserved), 0) into bytes from new_rows;
  else
    select -coalesce(sum(reserved), 0) into bytes from old_rows;
  end if;
  if bytes <> 0 then
    update storage_usage set reserved_bytes = reserved_bytes + bytes;
  end if;
  return null;
end $$;
