// Planned times that have come: each is taken once, in the statement that writes the record of its invocation, by whichever
// runtime is first.
import type { Row } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Claim } from '../invocations/invocation-store.ts'

const context: RlsContext = { role: 'service', reason: 'planned runs' }

/** So long a planned time is remembered, and the last one of each function for ever. */
const retentionDays = 30

/** A run that ended says so in its record; one that was cut off counts for as long as it might have gone on. */
const isRunning = (
  fn: string,
) => `exists (select from function_schedule_runs r join function_invocations i on i.id = r.invocation_id
  where r.function_id = ${fn}.id and i.state = 'interrupted'
    and i.timestamp > now() - (${fn}.config ->> 'timeout')::float8 * interval '1 second')`

/** Won while no run of an earlier planned time goes on, and the function's trigger is still this one. */
export function claimPlannedTime(plannedAt: Date, triggerType: string): Claim {
  return {
    text: `insert into function_schedule_runs (function_id, planned_at, invocation_id)
      select f.id, $5::timestamptz, $2 from f where f.trigger_type = $6 and not ${isRunning('f')} on conflict do nothing returning 1`,
    values: [plannedAt.toISOString(), triggerType],
  }
}

/** Takes a planned time without a run; nothing when it is taken, or the function's trigger is another one by now. */
export async function skipPlannedTime(
  { database }: Tenant,
  { id, triggerType }: { id: string; triggerType: string },
  plannedAt: Date,
  why: 'overlap' | 'missed',
): Promise<void> {
  await database.query(
    context,
    `insert into function_schedule_runs (function_id, planned_at, skipped)
     select id, $2::timestamptz, $3 from functions where id = $1 and enabled and trigger_type = $4 on conflict do nothing`,
    id,
    plannedAt.toISOString(),
    why,
    triggerType,
  )
}

/** The one at hand stays: what was missed is counted from there. */
export async function evictOldTimes({ database }: Tenant, functionId: string, plannedAt: Date): Promise<void> {
  await database.query(
    context,
    `delete from function_schedule_runs where function_id = $1 and planned_at < $2::timestamptz - interval '${retentionDays} days'`,
    functionId,
    plannedAt.toISOString(),
  )
}

/** The latest first, as they are shown: what came of each planned time. */
export async function listPlannedTimes(
  { database }: Tenant,
  caller: RlsContext,
  functionId: string,
  { limit, before }: { limit: number; before: string | null },
): Promise<Row[]> {
  const { rows } = await database.query(
    caller,
    `select r.planned_at, r.created_at as taken_at, case when r.skipped is not null then 'skipped' else 'run' end as outcome,
       r.skipped as reason, r.invocation_id
     from function_schedule_runs r
     where r.function_id = $1 and ($2::timestamptz is null or r.planned_at < $2::timestamptz)
     order by r.planned_at desc limit $3`,
    functionId,
    before,
    limit,
  )
  return rows
}
