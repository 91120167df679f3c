-- The bytes that a run sent to other hosts with `http_fetch` (docs/metering.md). Until the run ends, those that it may have sent at
-- most: they are written before each request.
alter table {{schema}}.function_invocations
  add column egress_bytes bigint not null default 0 constraint invocation_egress check (egress_bytes >= 0);

-- A home that has lost the table gets it with the repair.
alter table if exists {{schema}}.usage_hours
  drop constraint if exists usage_hours_meter_check,
  add constraint usage_hours_meter_check check (meter in ('file_byte_us', 'function_invocations', 'function_milliseconds',
    'function_cpu_microseconds', 'function_memory_kib_milliseconds', 'function_egress_bytes'));

create or replace function {{schema}}.function_invocations_gone() returns trigger language plpgsql set search_path = '' as $$
begin
  insert into {{schema}}.usage_hours (hour, meter, value)
    select hour, meter, value from (
      select date_trunc('hour', timestamp, 'UTC') as hour, count(*) as invocations, sum(duration_ms) as milliseconds,
        sum(round(cpu_ms * 1000)) as cpu, sum(ceil(memory_peak / 1024.0) * duration_ms) as memory, sum(egress_bytes) as egress
      from old_rows, {{schema}}.storage_usage where timestamp >= books_began group by 1
    ) as gone, lateral (values ('function_invocations', invocations::numeric), ('function_milliseconds', milliseconds::numeric),
      ('function_cpu_microseconds', cpu::numeric), ('function_memory_kib_milliseconds', memory::numeric),
      ('function_egress_bytes', egress)) as sums (meter, value)
    on conflict (hour, meter) do update set value = usage_hours.value + excluded.value;
  return null;
end $$;
