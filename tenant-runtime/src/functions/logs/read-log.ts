// The log of a function, line by line: a page of it, newest first, and what comes behind a place, for those who follow.
import { sql, type Row, type Statement } from '../../database/statement.ts'
import { listed, type EventPage } from '../../events/event-reader.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { LogLevel } from '../executor/protocol.ts'
import { noSuchFunction } from '../function-store.ts'

/** A line's place: its run's number times this, and its number in the run, from 1. More than a run has lines. */
export const positionsPerRun = 4_096n

export interface LogFilter {
  invocationId: string | undefined
  levels: readonly LogLevel[] | undefined
  /** Milliseconds since 1970: from, and up to but without. */
  since: number | undefined
  until: number | undefined
}

interface LogEntry {
  timestamp: string
  invocation_id: string
  level: string
  message: string
}

/** Of messages in a page, but for the last one. */
const pageBytes = 2 * 1024 * 1024
const maxFollowed = 500

const columns = 'p.place::text as place, p.invocation_id, p.timestamp, p.level, p.message'

/** @param order and between which places; undefined for no bound */
function pageStatement(
  name: string,
  { invocationId, levels, since, until }: LogFilter,
  order: 'asc' | 'desc',
  after: bigint | undefined,
  before: bigint | undefined,
  limit: number,
): Statement {
  const location = `(l.seq * ${positionsPerRun} + e.n)`
  return sql(
    `with page as (
       select ${location} as place, l.invocation_id, e.line->>'timestamp' as timestamp, e.line->>'level' as level,
         e.line->>'message' as message
       from function_logs l cross join lateral jsonb_array_elements(l.lines) with ordinality as e (line, n)
       where l.function_id = (select id from functions where name = $1)
         and ($2::bigint is null or (l.seq >= $2::bigint / ${positionsPerRun} and ${location} > $2::bigint))
         and ($3::bigint is null or (l.seq <= $3::bigint / ${positionsPerRun} and ${location} < $3::bigint))
         and ($4::text is null or l.invocation_id = $4) and ($5::jsonb is null or $5::jsonb ? (e.line->>'level'))
         and ($6::timestamptz is null or (e.line->>'timestamp')::timestamptz >= $6::timestamptz)
         and ($7::timestamptz is null or (e.line->>'timestamp')::timestamptz < $7::timestamptz)
       order by l.seq ${order}, e.n ${order} limit $8::int)
     select ${columns}, (select count(*) from page)::int as found
     from (select *, sum(octet_length(message)) over (order by place ${order}) - octet_length(message) as before from page) p
     where p.before < ${pageBytes} order by p.place ${order}`,
    name,
    after ?? null,
    before ?? null,
    invocationId ?? null,
    listed(levels),
    boundOf(since),
    boundOf(until),
    limit,
  )
}

/** A bound in milliseconds since 1970, for Postgres; null for none. */
export function boundOf(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString()
}

/**
 * The newest lines before a place.
 * @throws RuntimeError NO_SUCH_FUNCTION
 */
export async function readLog(
  { database }: Tenant,
  context: RlsContext,
  name: string,
  filter: LogFilter,
  before: bigint | undefined,
  limit: number,
): Promise<{ lines: LogEntry[]; next: bigint | undefined }> {
  const [found, page] = await database.read(
    context,
    sql('select 1 from functions where name = $1', name),
    pageStatement(name, filter, 'desc', undefined, before, limit + 1),
  )
  if (found?.count !== 1) throw noSuchFunction()
  const rows = page?.rows ?? []
  const shown = rows.slice(0, limit)
  const hasMore = Number(rows[0]?.['found'] ?? 0) > shown.length
  const last = shown.at(-1)
  return { lines: shown.map(entryOf), next: hasMore && last !== undefined ? BigInt(String(last['place'])) : undefined }
}

/** Lines behind `after`, up to `upTo`, oldest first. */
export async function readNewLines(
  { database }: Tenant,
  context: RlsContext,
  name: string,
  filter: LogFilter,
  after: bigint,
  upTo: bigint,
): Promise<EventPage> {
  const [page] = await database.read(context, pageStatement(name, filter, 'asc', after, upTo + 1n, maxFollowed))
  const rows = page?.rows ?? []
  const events = rows.map((row) => ({ seq: BigInt(String(row['place'])), payload: JSON.stringify(entryOf(row)) }))
  return { events, isLast: rows.length === Number(rows[0]?.['found'] ?? 0) && rows.length < maxFollowed }
}

function entryOf(row: Row): LogEntry {
  return {
    timestamp: String(row['timestamp']),
    invocation_id: String(row['invocation_id']),
    level: String(row['level']),
    message: String(row['message']),
  }
}
