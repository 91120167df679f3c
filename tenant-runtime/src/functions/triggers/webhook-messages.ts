// Messages of webhooks that have been taken: each runs once, however often it is sent, unless it failed.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { storedTrigger } from '../function.ts'
import type { Claim } from '../invocations/invocation-store.ts'

const context: RlsContext = { role: 'service', reason: 'webhook' }

/** A message's timestamp holds for 5 minutes in either direction; the clocks of database and runtime may differ too. */
const retentionMinutes = 60

/** Undefined for a function that is not there, is disabled, or has another trigger. */
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
  // The time matters to schedules alone.
  const trigger = storedTrigger(String(row['trigger_type']), new Date(0))
  return typeof trigger === 'object' && 'Webhook' in trigger
    ? { functionId: String(row['id']), secret: trigger.Webhook.secret }
    : undefined
}

/** A run that was cut off may be one that goes on, until its time is over. */
const isUnderWay = (record: string, config: string) =>
  `${record}.state = 'interrupted' and ${record}.timestamp > now() - (${config} ->> 'timeout')::float8 * interval '1 second'`

/** Won by the first message of an id, and by one whose run before has failed. A record that is not there is no failure. */
export function claimMessage(messageId: string): Claim {
  return {
    text: `insert into function_webhook_ids as m (function_id, message_id, invocation_id) select f.id, $5, $2 from f
      on conflict (function_id, message_id) do update set invocation_id = excluded.invocation_id, received_at = now()
      where exists (
        select from function_invocations i, f
        where i.id = m.invocation_id and f.id = m.function_id and i.status <> 'success'
          and not (${isUnderWay('i', 'f.config')}))
      returning 1`,
    values: [messageId],
  }
}

/** What became of a message that was not won. */
export async function messageState(
  { database }: Tenant,
  functionId: string,
  messageId: string,
): Promise<'done' | 'under way'> {
  const { rows } = await database.query(
    context,
    `select i.status = 'success' as done
     from function_webhook_ids m left join function_invocations i on i.id = m.invocation_id
     where m.function_id = $1 and m.message_id = $2`,
    functionId,
    messageId,
  )
  return rows[0] === undefined || rows[0]['done'] === false ? 'under way' : 'done'
}

/** A function that refused a message may be sent it again. */
export async function deleteMessage({ database }: Tenant, invocationId: string): Promise<void> {
  await database.query(context, 'delete from function_webhook_ids where invocation_id = $1', invocationId)
}

/** Those whose signatures hold no more. */
export async function deleteOldMessages({ database }: Tenant): Promise<void> {
  await database.query(
    context,
    `delete from function_webhook_ids where received_at < now() - interval '${retentionMinutes} minutes'`,
  )
}
