// Reads a function's log line by line: pages from the newest line on, and for followers the lines after a position.
import { bytesBefore } from '../../database/bytes-before.ts'
import { sql, type Row, type Statement } from '../../database/statement.ts'
import { listed, type EventPage } from '../../events/event-reader.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { LogLevel } from '../executor/protocol.ts'
import { noSuchFunction } from '../function-store.ts'

/** Positions for each run: a line's position is its run's number times this plus its number in the run, from 1. */
export const positionsPerRun = 4_096n

export interface LogFilter {
  invocationId: string | undefined
  levels: readonly LogLevel[] | undefined
  /** First time in milliseconds since 1970. */
  since: number | undefined
  /** End in milliseconds since 1970; excluded. */
  until: number | undefined
}

interface LogEntry {
  timestamp: string
  invocation_id: string
  level: string
  message: string
}

/** Bytes of the messages of a page, without the last one. */
const pageBytes = 2 * 1024 * 1024
const maxFollowed = 500

const columns = 'p.position::text as position, p.invocation_id, p.timestamp, p.level, p.message'

/** Returns the statement of a page. @param after lower bound of positions @param before upper bound; both are excluded */
function pageStatement(
  name: string,
  { invocationId, levels, since, until }: LogFilter,
  order: 'asc' | 'desc',
  after: bigint | undefined,
  before: bigint | undefined,
  limit: number,
): Statement {
  const position = `(l.seq * ${positionsPerRun} + e.n)`
  return sql(
    `with page as (
       select ${position} as position, l.invocation_id, e.line->>'timestamp' as timestamp, e.line->>'level' as level,
         e.line->>'message' as message
       from function_logs l cross join lateral jsonb_array_elements(l.lines) with ordinality as e (line, n)
       where l.function_id = (select id from functions where name = $1)
         and ($2::bigint is null or (l.seq >= $2::bigint / ${positionsPerRun} and ${position} > $2::bigint))
         and ($3::bigint is null or (l.seq <= $3::bigint / ${positionsPerRun} and ${position} < $3::bigint))
         and ($4::text is null or l.invocation_id = $4) and ($5::jsonb is null or $5::jsonb ? (e.line->>'level'))
         and ($6::timestamptz is null or (e.line->>'timestamp')::timestamptz >= $6::timestamptz)
         and ($7::timestamptz is null or (e.line->>'timestamp')::timestamptz < $7::timestamptz)
       order by l.seq ${order}, e.n ${order} limit $8::int)
     select ${columns}, (select count(*) from page)::int as found
     from (select *, ${bytesBefore('octet_length(message)', `position ${order}`)} as before from page) p
     where p.before < ${pageBytes} order by p.position ${order}`,
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

/** Converts milliseconds since 1970 for Postgres; undefined to null. */
export function boundOf(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString()
}

/**
 * Reads the newest lines before a position.
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
  return {
    lines: shown.map(entryOf),
    next: hasMore && last !== undefined ? BigInt(String(last['position'])) : undefined,
  }
}

/** Reads the lines after position `after` up to `upTo`, oldest first. */
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
  const events = rows.map((row) => ({ seq: BigInt(String(row['position'])), payload: JSON.stringify(entryOf(row)) }))
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
