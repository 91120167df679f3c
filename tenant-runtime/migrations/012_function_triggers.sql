-- What starts functions beside requests: changes of records, planned times, webhooks (tenant-runtime/src/functions/triggers).

-- Since when its trigger is what it is: planned times before that were never promised.
alter table functions add column trigger_since timestamptz(3) not null default now();

-- Changes of records that a function is to be told of, written in the transaction of the change (outbox) and deleted once
-- the function has taken them. Without a foreign key: a function that is gone must not fail whoever writes records.
create table function_deliveries (
  seq              bigint generated always as identity primary key,
  function_id      uuid not null,
  payload          jsonb not null,
  state            text not null default 'waiting' check (state in ('waiting', 'dead')),
  attempts         integer not null default 0 check (attempts >= 0),
  -- Null: at once.
  next_attempt_at  timestamptz(3),
  last_error       text,
  created_at       timestamptz(3) not null default now(),
  tenant_id        text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
create index function_deliveries_in_order on function_deliveries (function_id, state, seq);
alter table function_deliveries enable row level security, force row level security;
-- Whoever changes a record writes them, by the record's trigger: nobody makes one up.
create policy write on function_deliveries for insert with check (tenant_id = {{tenant}} and pg_trigger_depth() > 0);
create policy service on function_deliveries using (tenant_id = {{tenant}} and {{role}} = 'service_role');

-- The runtime that delivers: one at a time, so that deliveries keep their order.
create table function_dispatcher (
  only_row   boolean primary key default true check (only_row),
  holder     text not null,
  until      timestamptz(3) not null,
  tenant_id  text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
alter table function_dispatcher enable row level security, force row level security;
create policy service on function_dispatcher using (tenant_id = {{tenant}} and {{role}} = 'service_role');

-- A planned time is taken once, whoever sees it come: with its invocation, or with why there was none.
create table function_schedule_runs (
  function_id    uuid not null references functions on delete cascade,
  planned_at     timestamptz(3) not null,
  invocation_id  text,
  skipped        text check (skipped in ('overlap', 'missed')),
  created_at     timestamptz(3) not null default now(),
  tenant_id      text not null default {{tenant_id}} check (tenant_id = {{tenant_id}}),
  primary key (function_id, planned_at),
  check ((invocation_id is null) = (skipped is not null))
);
alter table function_schedule_runs enable row level security, force row level security;
create policy service on function_schedule_runs using (tenant_id = {{tenant}} and {{role}} = 'service_role');

-- Messages of webhooks that have been taken, for longer than their signatures hold.
create table function_webhook_ids (
  function_id    uuid not null references functions on delete cascade,
  message_id     text not null,
  -- The last that was begun for it; its record says what became of it.
  invocation_id  text not null,
  received_at    timestamptz(3) not null default now(),
  tenant_id      text not null default {{tenant_id}} check (tenant_id = {{tenant_id}}),
  primary key (function_id, message_id)
);
create index function_webhook_ids_by_age on function_webhook_ids (received_at);
alter table function_webhook_ids enable row level security, force row level security;
create policy service on function_webhook_ids using (tenant_id = {{tenant}} and {{role}} = 'service_role');
