// Keeps the event log within its limits by deleting the oldest events in batches. The transaction that deletes them also
// stores up to where they are deleted.
import { sql } from '../database/statement.ts'
import type { Tenant } from '../tenancy/tenant.ts'

export interface EventBounds {
  /** The number of days after which events are deleted; null for never. */
  days: number | null
  /** The maximum stored size of the newest events. Older ones are deleted. Null is unlimited. */
  bytes: number | null
  /** The maximum number of events that one transaction deletes. */
  batch: number
}

/** The bounds of a tenant whose manifest does not state its plan's. */
export const eventBounds: EventBounds = { days: 7, bytes: 256 * 1024 * 1024, batch: 10_000 }

const context = { role: 'service', reason: 'old events' } as const

/** Returns the bounds of the tenant's plan. */
function boundsOf({ limits: { event_days: days = eventBounds.days, event_bytes: bytes = eventBounds.bytes } }: Tenant) {
  return { ...eventBounds, days, bytes }
}

/**
 * Deletes events beyond the limits.
 * @returns the number of deleted events
 */
export async function trimEvents(tenant: Tenant, bounds: EventBounds = boundsOf(tenant)): Promise<number> {
  const { days, bytes, batch } = bounds
  // Events that are too old are deleted first, because summing up the sizes of a long log takes longer than the statement
  // timeout.
  const old = await remove(tenant, '0', { days, batch })
  const beyond = bytes === null ? '0' : await lastBeyond(tenant, bytes)
  return old + (beyond === '0' ? 0 : await remove(tenant, beyond, { days, batch }))
}

/**
 * Finds the newest event beyond the size limit.
 * @returns the number of the event; `0` when all fit
 */
async function lastBeyond({ database }: Tenant, bytes: number): Promise<string> {
  // Space of deleted events is reused, so a large table may have few events.
  const { rows } = await database.query(
    context,
    `select (case when pg_table_size('event_log') <= $1::bigint then 0 else coalesce(
       (select max(seq) from (
           select seq, sum(pg_column_size(payload) + 100) over (order by seq desc) as bytes from event_log) e
         where bytes > $1::bigint), 0) end)::text as beyond`,
    bytes,
  )
  return String(rows[0]?.['beyond'])
}

/** Deletes events up to a number, and those that are too old. */
async function remove(
  { database }: Tenant,
  beyond: string,
  { days, batch }: Pick<EventBounds, 'days' | 'batch'>,
): Promise<number> {
  let removed = 0
  for (;;) {
    const [, gone] = await database.run(
      context,
      sql(
        `update event_log_gone set up_to = cut from (
           select max(seq) as cut from (select seq, created_at from event_log order by seq limit $1::int) oldest
           where seq <= $2::bigint or created_at < now() - make_interval(days => $3::int)) as c
         where cut > up_to`,
        batch,
        beyond,
        days,
      ),
      sql('delete from event_log where seq <= (select up_to from event_log_gone)'),
    )
    removed += gone?.count ?? 0
    if ((gone?.count ?? 0) < batch) return removed
  }
}
