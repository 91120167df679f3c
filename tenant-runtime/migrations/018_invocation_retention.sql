-- The runtime deletes old records of runs (docs/functions.md). Their sums remain in usage_hours. Records of the last day stay, so
-- that no statement with the runtime's login hides what has just happened.
grant delete on {{schema}}.function_invocations to {{runtime}};
create policy retained on {{schema}}.function_invocations as restrictive for delete
  using (tenant_id = {{tenant}} and timestamp < now() - interval '1 day');
