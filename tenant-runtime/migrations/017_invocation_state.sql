-- Whether a run has ended is a state of its record: a function may itself fail with the text "interrupted". `status` keeps the
-- specification's three values; the record of an interrupted run shows `error`.
alter table {{schema}}.function_invocations
  add column state text not null default 'ended' constraint invocation_state check (state in ('interrupted', 'ended'));
-- Only new records begin as interrupted ones: those from before keep the default of their time without being written again.
alter table {{schema}}.function_invocations alter column state set default 'interrupted';
update {{schema}}.function_invocations set state = 'interrupted' where error_message = 'interrupted';
