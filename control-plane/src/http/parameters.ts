// Headers and query parameters that several operations take. Nothing is coerced silently: texts are checked, then read.
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import type { ResponseKey } from '../platform/stored-responses.ts'
import type { PageRequest } from '../platform/page.ts'
import type { Actor } from '../platform/recorded-write.ts'

const defaultLimit = 100
const maxWait = 60

/** Text that Postgres can hold. */
export const textPattern = '^[^\\u0000\\ud800-\\udfff]*$'

/** For a POST that says all by its path: no body, or an empty object. */
export const NoBody = Type.Union([Type.Object({}, { additionalProperties: false }), Type.Null()])

/** Query parameters of every list. */
export const PageQuery = {
  limit: Type.Optional(Type.String({ pattern: '^[0-9]{1,4}$', description: '1 to 1000, default 100' })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: '`next_cursor` of the page before' })),
}

/** Reads the query parameters of a list. @throws ControlError INVALID_PARAMETER for a limit that is not from 1 to 1000 */
export function pageRequest(query: { limit?: string; cursor?: string }): PageRequest {
  const limit = query.limit === undefined ? defaultLimit : Number(query.limit)
  if (limit < 1 || limit > 1000)
    throw new ControlError('INVALID_PARAMETER', 'query parameter "limit" must be from 1 to 1000')
  return { limit, cursor: query.cursor }
}

/** Seconds of `Prefer: wait=N`; 0 without one. */
export function waitSeconds(request: FastifyRequest): number {
  const header = request.headers['prefer']
  if (header === undefined) return 0
  const match = /(?:^|,)\s*wait\s*=\s*"?([^",;\s]*)"?/i.exec(String(header))
  if (match === null) return 0
  const seconds = Number(match[1])
  if (match[1] === '' || !Number.isInteger(seconds) || seconds < 0) {
    throw new ControlError('INVALID_HEADER', 'Prefer: wait must be a whole number of seconds')
  }
  return Math.min(seconds, maxWait)
}

/** Generation named by `If-Match`; undefined without the header, or for `*`. */
export function ifMatch(request: FastifyRequest): number | undefined {
  const header = request.headers['if-match']
  if (header === undefined || header === '*') return undefined
  const match = /^"(\d{1,9})"$/.exec(header)
  // A tag we never gave matches nothing.
  if (match === null) throw new ControlError('STALE_ETAG', `If-Match ${header} is no ETag of this tenant`)
  return Number(match[1])
}

/** Who writes, and under which Idempotency-Key. */
export interface WriteContext {
  actor: Actor
  responseKey: ResponseKey | undefined
}

/** Reads who writes, and the `Idempotency-Key` if there is one. @throws ControlError INVALID_HEADER for a malformed key */
export function writeContext(request: FastifyRequest): WriteContext {
  const keyId = request.platformKey?.id
  if (keyId === undefined) throw new Error('a write without a platform key')
  const key = request.headers['idempotency-key']
  if (key === undefined) return { actor: { keyId }, responseKey: undefined }
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new ControlError('INVALID_HEADER', 'Idempotency-Key must be 1 to 255 visible ASCII characters')
  }
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([request.method, request.url, request.body ?? null]))
    .digest('hex')
  return { actor: { keyId }, responseKey: { platformKeyId: keyId, key, fingerprint } }
}

/** Schema of a route without query parameters: any is rejected by name. */
export const NoQuery = Type.Object({}, { additionalProperties: false })
