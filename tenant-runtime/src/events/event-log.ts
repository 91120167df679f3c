// The event log of a home (specification, section 6): the row of a change, written in the change's own transaction.
import { sql, type Statement } from '../database/statement.ts'

/**
 * An SQL expression of the transaction's time in the format of events, for statements that write their event themselves.
 */
export const eventTime = `to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

export function eventStatement(type: string, ownerId: string | null, payload: Record<string, unknown>): Statement {
  return sql(
    `insert into event_log (type, owner_id, payload) values ($1, $2, $3::jsonb || jsonb_build_object('timestamp', ${eventTime}))`,
    type,
    ownerId,
    JSON.stringify({ type, ...payload, owner_id: ownerId }),
  )
}
