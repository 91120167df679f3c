-- Functions and their runs (specification, sections 2.4 and 2.5).

create table functions (
  id            uuid primary key default gen_random_uuid(),
  name          text not null constraint function_name_taken unique check (name ~ '^[a-z][a-z0-9_-]{0,63}$'),
  description   text not null default '',
  trigger_type  text not null,
  wasm_hash     text not null check (wasm_hash ~ '^[0-9a-f]{64}$'),
  wasm_data     bytea not null check (octet_length(wasm_data) <= 10485760),
  config        jsonb not null,
  enabled       boolean not null default true,
  created_at    timestamptz(3) not null default now(),
  updated_at    timestamptz(3) not null default now(),
  tenant_id     text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
-- Modules hardly compress, and are read whole.
alter table functions alter column wasm_data set storage external;
alter table functions enable row level security, force row level security;
create policy service on functions using (tenant_id = {{tenant}} and {{role}} = 'service_role');

-- One for each run: inserted as an interrupted one when it is dispatched, finished when it ends.
create table function_invocations (
  id             text primary key,
  function_id    uuid not null constraint function_is_there references functions on delete cascade,
  trigger        text not null check (trigger in ('http', 'database', 'schedule')),
  status         text not null default 'error' check (status in ('success', 'error', 'timeout')),
  duration_ms    integer not null default 0 check (duration_ms >= 0),
  memory_peak    bigint not null default 0 check (memory_peak >= 0),
  error_message  text default 'interrupted',
  user_id        text,
  timestamp      timestamptz(3) not null default now(),
  tenant_id      text not null default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
create index function_invocations_by_function on function_invocations (function_id, timestamp desc);
alter table function_invocations enable row level security, force row level security;
create policy service on function_invocations using (tenant_id = {{tenant}} and {{role}} = 'service_role');
create policy caller on function_invocations for select using (tenant_id = {{tenant}} and user_id = {{user_id}});
revoke delete on function_invocations from {{runtime}};
