// Headers and query parameters that several routes accept. Nothing is coerced silently: texts are validated, then converted.
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import type { IdempotencyKey } from '../platform/stored-responses.ts'
import type { PageRequest } from '../platform/page.ts'
import type { Actor } from '../platform/recorded-write.ts'

const defaultLimit = 100
const maxWaitSeconds = 60

/** Pattern of texts that Postgres can store. */
export const textPattern = '^[^\\u0000\\ud800-\\udfff]*$'

/** Body of a POST whose path contains the whole request: none, or an empty object. */
export const NoBody = Type.Union([Type.Object({}, { additionalProperties: false }), Type.Null()])

/** Query parameters of every list. */
export const PageQuery = {
  limit: Type.Optional(Type.String({ pattern: '^[0-9]{1,4}$', description: '1 to 1000, default 100' })),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: '`next_cursor` of the previous page' }),
  ),
}

/** Reads the query parameters of a list. @throws ControlError INVALID_PARAMETER for a limit that is not from 1 to 1000 */
export function pageRequest(query: { limit?: string; cursor?: string }): PageRequest {
  const limit = query.limit === undefined ? defaultLimit : Number(query.limit)
  if (limit < 1 || limit > 1000)
    throw new ControlError('INVALID_PARAMETER', 'Query parameter "limit" must be from 1 to 1000.')
  return { limit, cursor: query.cursor }
}

/** Returns the seconds of `Prefer: wait=N`; 0 without one. */
export function waitSeconds(request: FastifyRequest): number {
  const header = request.headers['prefer']
  if (header === undefined) return 0
  const match = /(?:^|,)\s*wait\s*=\s*"?([^",;\s]*)"?/i.exec(String(header))
  if (match === null) return 0
  const seconds = Number(match[1])
  if (match[1] === '' || !Number.isInteger(seconds) || seconds < 0) {
    throw new ControlError('INVALID_HEADER', 'Header "Prefer: wait" must be a whole number of seconds.')
  }
  return Math.min(seconds, maxWaitSeconds)
}

/** Returns the generation in `If-Match`; undefined without the header, or for `*`. */
export function ifMatch(request: FastifyRequest): number | undefined {
  const header = request.headers['if-match']
  if (header === undefined || header === '*') return undefined
  const match = /^"(\d{1,9})"$/.exec(header)
  // An unknown tag matches nothing.
  if (match === null)
    throw new ControlError('STALE_ETAG', `If-Match ${header.slice(0, 100)} is not an ETag of this tenant.`)
  return Number(match[1])
}

/** The author of a write, and its Idempotency-Key. */
export interface WriteContext {
  actor: Actor
  idempotencyKey: IdempotencyKey | undefined
}

/**
 * Reads the author, and the `Idempotency-Key` if there is one. @throws ControlError INVALID_HEADER for a malformed key
 */
export function writeContext(request: FastifyRequest): WriteContext {
  const keyId = request.platformKey?.id
  if (keyId === undefined) throw new Error('A write has no platform key.')
  const key = request.headers['idempotency-key']
  if (key === undefined) return { actor: { keyId }, idempotencyKey: undefined }
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new ControlError('INVALID_HEADER', 'Header "Idempotency-Key" must be 1 to 255 visible ASCII characters.')
  }
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([request.method, request.url, request.body ?? null]))
    .digest('hex')
  return { actor: { keyId }, idempotencyKey: { platformKeyId: keyId, key, fingerprint } }
}

/** Schema of a route without query parameters. Any is rejected by name. */
export const NoQuery = Type.Object({}, { additionalProperties: false })
