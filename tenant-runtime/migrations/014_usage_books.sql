-- What the home says of its use, hour by hour (docs/metering.md): the time integral of its files' bytes, kept by whatever changes
-- them, and the runs of functions whose records are gone.

alter table storage_usage
  -- Bytes times microseconds, up to `counted_at`; the bytes since then are `file_bytes`.
  add column file_byte_us numeric not null default 0 check (file_byte_us >= 0),
  add column counted_at timestamptz not null default clock_timestamp(),
  -- Drawn anew where books are begun anew (a home from a backup), so that nothing is counted twice.
  add column books uuid not null default gen_random_uuid(),
  add column books_began timestamptz not null default clock_timestamp();

-- Of `file_byte_us` the value at the start of an hour: between two of them, and between one and `counted_at`, it grows
-- evenly. Of the others what deleted records had said of the runs that began in the hour.
create table usage_hours (
  hour   timestamptz not null,
  meter  text not null check (meter in ('file_byte_us', 'function_invocations', 'function_milliseconds', 'function_cpu_microseconds', 'function_memory_kib_milliseconds')),
  value  numeric not null check (value >= 0),
  primary key (hour, meter)
);
revoke delete on usage_hours from {{runtime}};

create function storage_usage_counted() returns trigger language plpgsql as $$
declare
  at timestamptz := greatest(clock_timestamp(), old.counted_at);
  first timestamptz := date_trunc('hour', old.counted_at, 'UTC') + interval '1 hour';
  last timestamptz := date_trunc('hour', at, 'UTC');
begin
  -- Nobody sets them.
  new.books := old.books;
  new.books_began := old.books_began;
  if last >= first then
    insert into usage_hours (hour, meter, value)
      select hour, 'file_byte_us', old.file_byte_us + old.file_bytes * extract(epoch from hour - old.counted_at) * 1000000
      from (select first as hour union select last) as crossed
      on conflict do nothing;
  end if;
  new.file_byte_us := old.file_byte_us + old.file_bytes * extract(epoch from at - old.counted_at) * 1000000;
  new.counted_at := at;
  return new;
end $$;
create trigger counted before update on storage_usage for each row
  when (new.file_bytes <> old.file_bytes or new.file_byte_us <> old.file_byte_us or new.counted_at <> old.counted_at
    or new.books <> old.books or new.books_began <> old.books_began)
  execute function storage_usage_counted();

create function function_invocations_gone() returns trigger language plpgsql as $$
begin
  insert into usage_hours (hour, meter, value)
    select hour, meter, value from (
      select date_trunc('hour', timestamp, 'UTC') as hour, count(*) as invocations, sum(duration_ms) as milliseconds,
        sum(round(cpu_ms * 1000)) as cpu, sum(ceil(memory_peak / 1024.0) * duration_ms) as memory
      from old_rows, storage_usage where timestamp >= books_began group by 1
    ) as gone, lateral (values ('function_invocations', invocations::numeric), ('function_milliseconds', milliseconds::numeric),
      ('function_cpu_microseconds', cpu::numeric), ('function_memory_kib_milliseconds', memory::numeric)) as sums (meter, value)
    on conflict (hour, meter) do update set value = usage_hours.value + excluded.value;
  return null;
end $$;
create trigger gone after delete on function_invocations
  referencing old table as old_rows for each statement execute function function_invocations_gone();
