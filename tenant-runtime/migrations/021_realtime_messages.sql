-- The realtime messages of the tenant (docs/metering.md). Each runtime has a row of its own for each hour, with an ID in the
-- meter's name, and only increases it.
alter table if exists {{schema}}.usage_hours
  drop constraint if exists usage_hours_meter_check,
  add constraint usage_hours_meter_check check (meter in ('file_byte_us', 'function_invocations', 'function_milliseconds',
    'function_cpu_microseconds', 'function_memory_kib_milliseconds', 'function_egress_bytes')
    or meter ~ '^realtime_messages:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$');
