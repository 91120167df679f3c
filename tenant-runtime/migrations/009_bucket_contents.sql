-- `contents` is another value after every change of what is in a bucket, in the change's own transaction: who reads the same
-- value twice has read the same objects twice. Each such change counts in the bucket's row (007_counters_by_statement.sql),
-- so that it is drawn there. Drawn, not counted, so that none comes again in a database put back to an earlier state.

alter table storage_bucket_counters add column contents uuid not null default gen_random_uuid();

create function storage_bucket_contents_changed() returns trigger language plpgsql as $$
begin
  new.contents := gen_random_uuid();
  return new;
end $$;
create trigger contents before update on storage_bucket_counters
  for each row execute function storage_bucket_contents_changed();
