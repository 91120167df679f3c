// What is read of a home's event log: how far it is final, and what a caller may see of it.
import { sql } from '../database/statement.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { reached, type Poll, type Watermark } from './watermark.ts'

export interface EventFilter {
  /** Undefined: all. */
  types: readonly string[] | undefined
  buckets: readonly string[] | undefined
  collections: readonly string[] | undefined
}

interface StoredEvent {
  seq: bigint
  /** JSON on one line. */
  payload: string
}

export interface EventPage {
  events: StoredEvent[]
  /** There are no more of them. */
  isLast: boolean
}

const maxEvents = 200
/** Of text, but for the last event: a page is held in memory for each subscriber. */
const pageBytes = 2 * 1024 * 1024

/** The sequences that number what can be followed. Whoever takes a number of one has changed something before. */
export type LogSequence = 'event_log_seq_seq' | 'function_logs_seq_seq'

/** Undefined when there is nothing that the watermark does not say. A look at a log that grows takes a transaction's id. */
export async function readLog({ database }: Tenant, mark: Watermark, sequence: LogSequence): Promise<Poll | undefined> {
  const context: RlsContext = { role: 'service', reason: 'events' }
  // Before the first number is given out, it is the one that the sequence names.
  const { rows } = await database.query(
    context,
    `select (case when is_called then last_value else last_value - 1 end)::text as last from ${sequence}`,
  )
  const last = BigInt(String(rows[0]?.['last']))
  if (last <= reached(mark) && mark.pending === undefined) return undefined
  const [id, snapshot] = await database.run(
    context,
    sql('select pg_current_xact_id()::text as later'),
    // Each statement has a snapshot of its own.
    sql('select pg_snapshot_xmin(pg_current_snapshot())::text as ended'),
  )
  return { last, later: BigInt(String(id?.rows[0]?.['later'])), ended: BigInt(String(snapshot?.rows[0]?.['ended'])) }
}

/** The next entries after `after`, `upTo` included, that the caller may see. */
export async function readEvents(
  { database }: Tenant,
  context: RlsContext,
  filter: EventFilter,
  after: bigint,
  upTo: bigint,
): Promise<EventPage> {
  const { rows } = await database.query(
    context,
    `with page as (
       select e.seq, e.payload::text as payload from event_log e
       where e.seq > $1 and e.seq <= $2 and ($3::jsonb is null or $3::jsonb ? type)
         and ($4::jsonb is null or $4::jsonb ? (payload->>'bucket'))
         and ($5::jsonb is null or $5::jsonb ? (payload->>'collection'))
       order by e.seq limit ${maxEvents})
     select seq::text as seq, payload, (select count(*) from page)::int as found
     from (select seq, payload, sum(octet_length(payload)) over (order by seq) - octet_length(payload) as before from page) p
     where before < ${pageBytes} order by p.seq`,
    after,
    upTo,
    listed(filter.types),
    listed(filter.buckets),
    listed(filter.collections),
  )
  const events = rows.map((row) => ({ seq: BigInt(String(row['seq'])), payload: String(row['payload']) }))
  return { events, isLast: events.length === Number(rows[0]?.['found'] ?? 0) && events.length < maxEvents }
}

/** Up to which number events may be gone. A page that was read before may lack some of them. */
export async function goneUpTo({ database }: Tenant): Promise<bigint> {
  const { rows } = await database.lookUp(
    { role: 'service', reason: 'events' },
    sql('select up_to::text as up_to from event_log_gone'),
  )
  return BigInt(String(rows[0]?.['up_to']))
}

/** Names as a JSON array; null for no filter. */
export function listed(names: readonly string[] | undefined): string | null {
  return names === undefined ? null : JSON.stringify(names)
}
