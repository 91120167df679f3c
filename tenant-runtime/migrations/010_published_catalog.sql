-- What the last reload published: the home as it was then, with its schemas (tenant-runtime/src/rest/registry/publish.ts).
-- Until the next one nothing else is served, whatever becomes of the tables (specification, section 9.2).
create table published_catalog (
  only_row      boolean primary key default true check (only_row),
  document      jsonb not null,
  -- Another one with every reload.
  version       uuid not null,
  published_at  timestamptz(3) not null default now(),
  tenant_id     text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);

alter table published_catalog enable row level security, force row level security;
create policy read on published_catalog for select using (tenant_id = {{tenant}});
create policy reload on published_catalog using (tenant_id = {{tenant}} and {{role}} = 'service_role');
revoke insert, update, delete on published_catalog from {{runtime}};

-- Called by a change that turns out to be none that was asked for: nothing of it happens.
create function refuse_change(reason text, count bigint) returns boolean language plpgsql as $$
begin
  raise exception using errcode = 'TNREF', message = reason, detail = count::text;
end $$;
