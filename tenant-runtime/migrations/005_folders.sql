-- Listing one folder reads what it shows. `folder` is all of a path before its name, with the byte 1, which no path holds,
-- for each slash: in its order whole segments are compared, so that what lies in a folder, however deep, lies together and
-- folders stand in the order of their names.

alter table storage_objects add column folder text collate "C" not null
  generated always as (translate(left(path, length(path) - length(split_part(path, '/', -1))), '/', chr(1))) stored;
-- With all that finding a page needs, so that rows themselves are read for what is shown alone.
create index storage_objects_by_folder on storage_objects (bucket_id, folder, path) include (tenant_id, created_at, updated_at);

-- Whoever sees a bucket sees all that is in it; one policy says so, and readers are asked nothing else. The owner's
-- rights are to write.
drop policy owner on storage_objects;
do $policies$
declare
  may text := $may$
    tenant_id = {{tenant}} and (
      {{role}} = 'service_role'
      or exists (select from storage_buckets b where b.id = bucket_id and b.owner_id = {{user_id}})
      or (owner_id = {{user_id}}
        and exists (select from storage_buckets b where b.id = bucket_id and b.policy = 'authenticated' and {{role}} = 'authenticated')))
  $may$;
begin
  execute 'create policy insert_own on storage_objects for insert with check (' || may || ')';
  execute 'create policy update_own on storage_objects for update using (' || may || ')';
  execute 'create policy delete_own on storage_objects for delete using (' || may || ')';
end $policies$;
