// Planned times in a home. Each is claimed once, by the first runtime, in the statement that writes the invocation's record.
import { moveLeaseHolder } from '@tenantry/contract'
import type { Row } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Claim } from '../invocations/invocation-store.ts'

const context: RlsContext = { role: 'service', reason: 'planned runs' }

/** Days for which planned times are retained. The last one of each function is retained for ever. */
const retentionDays = 30

/** Whether a run of the function may be running: its record has no end, and its timeout is not over. */
const isRunning = (
  fn: string,
) => `exists (select from function_schedule_runs r join function_invocations i on i.id = r.invocation_id
  where r.function_id = ${fn}.id and i.state = 'interrupted'
    and i.timestamp > now() - (${fn}.config ->> 'timeout')::float8 * interval '1 second')`

/** Whether a move of the home lets no function begin by itself. */
const isMoving = `exists (select from function_dispatcher where holder = '${moveLeaseHolder}' and until > now())`

/**
 * Returns a claim that succeeds if no run of an earlier planned time is running, the trigger is unchanged and the home does not
 * move.
 */
export function claimPlannedTime(plannedAt: Date, triggerType: string): Claim {
  return {
    text: `insert into function_schedule_runs (function_id, planned_at, invocation_id)
      select f.id, $5::timestamptz, $2 from f
      where f.trigger_type = $6 and not ${isRunning('f')} and not ${isMoving} on conflict do nothing returning 1`,
    values: [plannedAt.toISOString(), triggerType],
  }
}

/**
 * Claims a planned time without a run, unless it is claimed or the function's trigger has changed. With the reason `overlap`, it
 * does so only while an earlier run continues.
 * @returns whether nothing remains to be done for the planned time
 */
export async function skipPlannedTime(
  { database }: Tenant,
  { id, triggerType }: { id: string; triggerType: string },
  plannedAt: Date,
  reason: 'overlap' | 'missed',
): Promise<boolean> {
  const { rows } = await database.query(
    context,
    `with f as (select * from functions where id = $1 and enabled and trigger_type = $4),
     skipped as (insert into function_schedule_runs (function_id, planned_at, skipped)
       select f.id, $2::timestamptz, $3 from f where $3 <> 'overlap' or ${isRunning('f')} on conflict do nothing returning 1)
     select exists (select from skipped) or not exists (select from f)
       or exists (select from function_schedule_runs where function_id = $1 and planned_at = $2::timestamptz) as done`,
    id,
    plannedAt.toISOString(),
    reason,
    triggerType,
  )
  return rows[0]?.['done'] === true
}

/** Deletes old planned times, but not `plannedAt`, from which missed ones are counted. */
export async function deleteOldTimes({ database }: Tenant, functionId: string, plannedAt: Date): Promise<void> {
  await database.query(
    context,
    `delete from function_schedule_runs where function_id = $1 and planned_at < $2::timestamptz - interval '${retentionDays} days'`,
    functionId,
    plannedAt.toISOString(),
  )
}

/** Lists the outcomes of planned times, latest first. */
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
