// The outbox of operators' webhooks. Events are written in the transaction of the change that they report.
import type { OperatorEvent } from './operator-event.ts'
import type { Transaction } from '../platform/database.ts'

/**
 * Writes an event. After the commit it is sent at least once to each endpoint that wants its type.
 * @param once the key of an event that is sent once: while an event with the same key is stored (90 days), this one is
 *   not written
 * @returns whether it was written
 */
export async function emitOperatorEvent(
  transaction: Pick<Transaction, '$executeRaw'>,
  { type, tenantId, data }: OperatorEvent,
  at: Date,
  once?: string,
): Promise<boolean> {
  const written = await transaction.$executeRaw`
    insert into operator_events (id, type, tenant_id, once, data, at)
    values (gen_random_uuid(), ${type}, ${tenantId ?? null}, ${once ?? null}, ${JSON.stringify(data)}::jsonb, ${at})
    on conflict (once) do nothing`
  return written === 1
}

/** Writes many events for operators in one statement, each as `emitOperatorEvent` does. */
export async function emitOperatorEvents(
  transaction: Pick<Transaction, '$executeRaw'>,
  events: readonly (OperatorEvent & { once: string })[],
  at: Date,
): Promise<void> {
  const rows = events.map(({ type, tenantId, data, once }) => ({ type, tenant_id: tenantId, data, once }))
  await transaction.$executeRaw`
    insert into operator_events (id, type, tenant_id, once, data, at)
    select gen_random_uuid(), type, tenant_id, once, data, ${at}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as e(type text, tenant_id text, once text, data jsonb)
    on conflict (once) do nothing`
}
