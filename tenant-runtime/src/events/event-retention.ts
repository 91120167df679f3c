// Keeps the event log within its bounds: the oldest events go, a batch at a time. Up to where they are gone is written in the
// transaction that removes them.
import { sql } from '../database/statement.ts'
import type { Tenant } from '../tenancy/tenant.ts'

export interface EventBounds {
  /** Older ones go. */
  days: number
  /** Of the newest, as they are stored; what is beyond that goes. */
  bytes: number
  /** Removed in one transaction. */
  batch: number
}

export const eventBounds: EventBounds = { days: 7, bytes: 256 * 1024 * 1024, batch: 10_000 }

/** Milliseconds between two looks at a tenant's log. */
const betweenPolls = 3_600_000

const context = { role: 'service', reason: 'old events' } as const

export class EventRetention {
  readonly #elapsed: () => number
  readonly #onError: (error: Error) => void
  /** When each log was last looked at, by its tenant. */
  readonly #polled = new Map<string, number>()
  readonly #polling = new Set<Promise<void>>()

  /** @param elapsed milliseconds, monotonic */
  constructor(elapsed: () => number, onError: (error: Error) => void) {
    this.#elapsed = elapsed
    this.#onError = onError
  }

  /** To be called now and then. Looks at the log if it was not looked at for an hour. Never throws. */
  poll(tenant: Tenant): void {
    const now = this.#elapsed()
    if (now - (this.#polled.get(tenant.id) ?? -Infinity) < betweenPolls) return
    this.#polled.set(tenant.id, now)
    const polling = trimEvents(tenant)
      .then(
        () => undefined,
        (cause: unknown) => this.#onError(new Error(`${tenant.id}: old events are still there`, { cause })),
      )
      .finally(() => this.#polling.delete(polling))
    this.#polling.add(polling)
  }

  /** Until every look is over that has begun. */
  async idle(): Promise<void> {
    await Promise.all(this.#polling)
  }

  evict(tenantId: string): void {
    this.#polled.delete(tenantId)
  }
}

/** @returns how many events were removed */
export async function trimEvents(tenant: Tenant, { days, bytes, batch }: EventBounds = eventBounds): Promise<number> {
  // What is too old goes first: weighing a log that has grown for long takes longer than a statement may.
  const old = await remove(tenant, '0', { days, batch })
  const beyond = await lastBeyond(tenant, bytes)
  return old + (beyond === '0' ? 0 : await remove(tenant, beyond, { days, batch }))
}

/** @returns number of the last event that the newest so many bytes leave no room for; `0`: there is none */
async function lastBeyond({ database }: Tenant, bytes: number): Promise<string> {
  // What was removed leaves room that is used again: a table that is large may have few events.
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

/** Those up to a number, and those that are too old. */
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
