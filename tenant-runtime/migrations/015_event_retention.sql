-- Events are kept for a while (docs/events.md). Up to which number they may be gone is known, so that whoever wants to go on
-- before it is told so.
create table event_log_gone (
  up_to      bigint not null default 0,
  tenant_id  text primary key default {{tenant_id}} check (tenant_id = {{tenant_id}})
);
insert into event_log_gone default values;

alter table event_log_gone enable row level security, force row level security;
create policy service on event_log_gone using (tenant_id = {{tenant}} and {{role}} = 'service_role');
revoke insert, delete on event_log_gone from {{runtime}};

grant delete on event_log to {{runtime}};
create policy trim on event_log for delete
  using (tenant_id = {{tenant}} and {{role}} = 'service_role' and seq <= (select up_to from event_log_gone));
