// Combines the `Range` header with `limit` and `offset`: the rows that both allow.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Query } from '../request/read-query.ts'
import { notSatisfiable, readRange } from '../request/read-range.ts'

/**
 * Returns the query with the combined range.
 * @throws RuntimeError RANGE_NOT_SATISFIABLE (PGRST103) when it has no rows
 */
export function ranged({ headers, method }: FastifyRequest, query: Query): Query {
  // Ranges apply only to GET (RFC 9110, section 14.2).
  if (method !== 'GET') return query
  const unit = headers['range-unit']
  const range = readRange(headers.range, unit === undefined ? undefined : String(unit))
  if (range === undefined) return query
  const { limit = Infinity, offset: first = 0 } = query.own
  if (range === 'empty')
    throw notSatisfiable('The lower boundary must be lower than or equal to the upper boundary in the Range header.')
  const offset = Math.max(first, range.offset)
  const end = Math.min(first + limit, range.offset + (range.limit ?? Infinity))
  if (end <= offset && limit !== 0)
    throw notSatisfiable('The Range header and limit and offset have no rows in common.')
  return { ...query, own: { ...query.own, offset, limit: end === Infinity ? undefined : Math.max(end - offset, 0) } }
}

/** Rejects an offset beyond the last row, with the number of rows in `Content-Range`. */
export function rejectOffsetBeyond(reply: FastifyReply, offset: number, total: number | undefined): void {
  if (total === undefined || offset <= total) return
  void reply.header('content-range', `*/${total}`)
  throw notSatisfiable(`An offset of ${offset} was requested, but there are only ${total} rows.`)
}
