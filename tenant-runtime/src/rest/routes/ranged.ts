// Combines the `Range` header with `limit` and `offset`: the rows that both allow.
import type { FastifyRequest } from 'fastify'
import type { Query } from '../request/read-query.ts'
import { readRange } from '../request/read-range.ts'
import { restError } from '../rest-error.ts'

/**
 * Returns the query with the combined range.
 * @throws RuntimeError RANGE_NOT_SATISFIABLE (PGRST103) when it has no rows
 */
export function ranged({ headers }: FastifyRequest, query: Query): Query {
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

export function notSatisfiable(details: string) {
  return restError('RANGE_NOT_SATISFIABLE', { code: 'PGRST103', message: 'Requested range not satisfiable', details })
}
