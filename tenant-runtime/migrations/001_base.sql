-- What every home has: the `schemas` collection (specification, section 2.3) and the event log (section 6).
-- Tokens in double braces are filled in by control-plane/src/homes/home-migrations.ts. Homes are made one for each
-- tenant, so every object counts: one policy says all of who may, and asks for the tenant first.

create table schemas (
  id          uuid primary key default gen_random_uuid(),
  name        text not null unique check (name ~ '^[a-z][a-z0-9_]{0,62}$'),
  fields      jsonb not null check (jsonb_typeof(fields) = 'array'),
  rls_policy  jsonb not null check (jsonb_typeof(rls_policy) = 'object'),
  created_at  timestamptz(3) not null default now(),
  updated_at  timestamptz(3) not null default now(),
  tenant_id   text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);

alter table schemas enable row level security, force row level security;
create policy service on schemas using (tenant_id = {{tenant}} and {{role}} = 'service_role');

-- Written in the transaction of the change it tells of (outbox). `xid` gives the order of commits to readers:
-- only events of transactions older than every running one are delivered.
create table event_log (
  seq         bigint generated always as identity primary key,
  xid         xid8 not null default pg_current_xact_id(),
  type        text not null,
  owner_id    text,
  payload     jsonb not null,
  created_at  timestamptz(3) not null default now(),
  tenant_id   text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
create index event_log_by_commit on event_log (xid, seq);

alter table event_log enable row level security, force row level security;
create policy read on event_log for select
  using (tenant_id = {{tenant}} and ({{role}} = 'service_role' or owner_id = {{user_id}}));
create policy write on event_log for insert with check (tenant_id = {{tenant}});
revoke update, delete on event_log from {{runtime}};

-- What the last reload made of `schemas`: nothing takes effect before it stands here (specification, section 9.2).
create table applied_schemas (
  name        text primary key,
  definition  jsonb not null,
  -- False after its schema was removed: the table is kept, the endpoint is gone.
  published   boolean not null default true,
  applied_at  timestamptz(3) not null default now(),
  tenant_id   text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);

alter table applied_schemas enable row level security, force row level security;
create policy read on applied_schemas for select using (tenant_id = {{tenant}});
create policy reload on applied_schemas using (tenant_id = {{tenant}} and {{role}} = 'service_role');
revoke insert, update, delete on applied_schemas from {{runtime}};
