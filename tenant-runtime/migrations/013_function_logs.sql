-- What functions' runs said, and the processor's time that each took.

alter table function_invocations
  add column cpu_ms double precision not null default 0 check (cpu_ms >= 0),
  -- The end of a run is written where its beginning stands.
  set (fillfactor = 80);

-- One for each run that said something, written with its end; the newest of each function are kept
-- (tenant-runtime/src/functions/logs/log-keeper.ts). `seq` gives the order, for the service alone.
create table function_logs (
  seq            bigint generated always as identity,
  function_id    uuid not null constraint function_of_log_is_there references functions on delete cascade,
  invocation_id  text not null,
  -- Of its first line.
  timestamp      timestamptz(3) not null,
  -- `[{"timestamp", "level", "message"}, …]`, without secrets.
  lines          jsonb not null check (jsonb_typeof(lines) = 'array'),
  bytes          integer not null check (bytes >= 0),
  tenant_id      text not null default {{tenant_id}} check (tenant_id = {{tenant_id}}),
  primary key (function_id, seq)
);
alter table function_logs enable row level security, force row level security;
create policy service on function_logs using (tenant_id = {{tenant}} and {{role}} = 'service_role');
revoke update on function_logs from {{runtime}};
