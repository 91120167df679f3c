// Reads a home's event log: up to where it is final, and the events that a caller may see.
import { bytesBefore } from '../database/bytes-before.ts'
import { sql } from '../database/statement.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { reached, type Poll, type Watermark } from './watermark.ts'

export interface EventFilter {
  /** Undefined means all. */
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
  /** Whether there are no more events. */
  isLast: boolean
}

const maxEvents = 200
/** The maximum bytes of a page's texts, except for the last event. A page is held in memory for each subscriber. */
const pageBytes = 2 * 1024 * 1024

/**
 * The collections whose changes only clients receive that name them. Others receive the events of files and buckets, which
 * report the same changes.
 */
const namedOnly = "'storage_objects', 'storage_buckets'"

/** The sequences that number what can be followed. A transaction takes a number only after another change. */
export type LogSequence = 'event_log_seq_seq' | 'function_logs_seq_seq' | 'realtime_messages_id_seq'

/** Polls the log. Returns undefined when there is nothing beyond the watermark. */
export async function readLog({ database }: Tenant, mark: Watermark, sequence: LogSequence): Promise<Poll | undefined> {
  const context: RlsContext = { role: 'service', reason: 'events' }
  // Before the first number is assigned, `last_value` is that number.
  const { rows } = await database.query(
    context,
    `select (case when is_called then last_value else last_value - 1 end)::text as last from ${sequence}`,
  )
  const last = BigInt(String(rows[0]?.['last']))
  if (last <= reached(mark) && mark.pending === undefined) return undefined
  // The control plane creates this function in every database of homes.
  const found = await database.query(context, "select array_to_string(tenantry.running_writers(), ' ') as running")
  return { last, running: String(found.rows[0]?.['running']).split(' ').filter(Boolean) }
}

/** Reads the next entries after `after`, up to and including `upTo`, that the caller may see. */
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
         and case when $5::jsonb is null then coalesce(payload->>'collection', '') not in (${namedOnly})
           else $5::jsonb ? (payload->>'collection') end
       order by e.seq limit ${maxEvents})
     select seq::text as seq, payload, (select count(*) from page)::int as found
     from (select seq, payload, ${bytesBefore('octet_length(payload)', 'seq')} as before from page) p
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

/** Returns the number up to which events may have been deleted. A page that was read before may lack some of them. */
export async function deletedUpTo({ database }: Tenant): Promise<bigint> {
  const { rows } = await database.lookUp(
    { role: 'service', reason: 'events' },
    sql('select up_to::text as up_to from event_log_gone'),
  )
  return BigInt(String(rows[0]?.['up_to']))
}

/** Returns names as a JSON array; null for no filter. */
export function listed(names: readonly string[] | undefined): string | null {
  return names === undefined ? null : JSON.stringify(names)
}
