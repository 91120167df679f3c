-- Schemas say whether changes of their records are told as events; an event says who else than its owner may read it.

alter table schemas add column events boolean not null default false;

-- `owner`: the owner alone; `signed_in`: every signed-in user; `anyone`. Those who may read the record, when it changed.
alter table event_log add column readers text not null default 'owner' check (readers in ('owner', 'signed_in', 'anyone'));
drop policy read on event_log;
create policy read on event_log for select
  using (tenant_id = {{tenant}} and (
    {{role}} = 'service_role' or owner_id = {{user_id}} or readers = 'anyone' or (readers = 'signed_in' and {{role}} = 'authenticated')));
