// Ids of received webhook messages, so that each message runs once, unless its run failed.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { storedTrigger } from '../function.ts'
import type { Claim } from '../invocations/invocation-store.ts'

const context: RlsContext = { role: 'service', reason: 'webhook' }

/** Minutes for which ids are retained; more than the 5 minutes for which a timestamp is valid, because clocks may differ. */
const retentionMinutes = 60

/** Finds the secret of a function's webhook; undefined if the function is missing, disabled or has another trigger. */
export async function findSecret(
  { database }: Tenant,
  name: string,
): Promise<{ functionId: string; secret: string } | undefined> {
  const { rows } = await database.lookUp(context, {
    text: `select id, trigger_type from functions where name = $1 and enabled and trigger_type like '{"Webhook"%'`,
    values: [name],
  })
  const [row] = rows
  if (row === undefined) return undefined
  // Only schedules use the time.
  const trigger = storedTrigger(String(row['trigger_type']), new Date(0))
  return typeof trigger === 'object' && 'Webhook' in trigger
    ? { functionId: String(row['id']), secret: trigger.Webhook.secret }
    : undefined
}

/** Whether a run may be running: its record has no end, and its timeout is not over. */
const isRunning = (record: string, config: string) =>
  `${record}.state = 'interrupted' and ${record}.timestamp > now() - (${config} ->> 'timeout')::float8 * interval '1 second'`

/** Returns a claim that succeeds for the first message of an id, or if the previous run failed. A missing record is not a failure. */
export function claimMessage(messageId: string): Claim {
  return {
    text: `insert into function_webhook_ids as m (function_id, message_id, invocation_id) select f.id, $5, $2 from f
      on conflict (function_id, message_id) do update set invocation_id = excluded.invocation_id, received_at = now()
      where exists (
        select from function_invocations i, f
        where i.id = m.invocation_id and f.id = m.function_id and i.status <> 'success'
          and not (${isRunning('i', 'f.config')}))
      returning 1`,
    values: [messageId],
  }
}

/** Returns the state of a message that could not be claimed. */
export async function messageState(
  { database }: Tenant,
  functionId: string,
  messageId: string,
): Promise<'done' | 'in progress'> {
  const { rows } = await database.query(
    context,
    `select i.status = 'success' as done
     from function_webhook_ids m left join function_invocations i on i.id = m.invocation_id
     where m.function_id = $1 and m.message_id = $2`,
    functionId,
    messageId,
  )
  return rows[0] === undefined || rows[0]['done'] === false ? 'in progress' : 'done'
}

/** Deletes the id of a message that the function rejected, so that it can be sent again. */
export async function deleteMessage({ database }: Tenant, invocationId: string): Promise<void> {
  await database.query(context, 'delete from function_webhook_ids where invocation_id = $1', invocationId)
}

/** Deletes the ids of messages whose signatures have expired. */
export async function deleteOldMessages({ database }: Tenant): Promise<void> {
  await database.query(
    context,
    `delete from function_webhook_ids where received_at < now() - interval '${retentionMinutes} minutes'`,
  )
}
