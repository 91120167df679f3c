// The gateway's own responses in the one error form: on a response, or raw on a connection without one.
import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { requestIdHeader } from '@tenantry/contract'
import { errorBody, type Rejection } from '../errors.ts'

/**
 * Writes the head of a rejection.
 * @returns the body, which the caller must write
 */
export function beginRejection(
  response: ServerResponse,
  rejection: Rejection,
  requestId: string,
  close: boolean,
): Buffer {
  const body = Buffer.from(JSON.stringify(errorBody(rejection)))
  response.writeHead(rejection.status, headers(rejection, body.length, requestId, close))
  return body
}

/** Writes the rejection of bytes that are not a valid request, and ends the connection. */
export function writeRawRejection(socket: Duplex, rejection: Rejection, requestId: string): void {
  const body = JSON.stringify(errorBody(rejection))
  const lines = headers(rejection, Buffer.byteLength(body), requestId, true)
  let head = `HTTP/1.1 ${rejection.status} ${STATUS_CODES[rejection.status] ?? ''}\r\n`
  for (let at = 0; at + 1 < lines.length; at += 2) head += `${lines[at] ?? ''}: ${lines[at + 1] ?? ''}\r\n`
  socket.end(`${head}\r\n${body}`)
}

function headers(rejection: Rejection, length: number, requestId: string, close: boolean): string[] {
  const list = [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(length),
    'cache-control',
    'no-store',
    requestIdHeader,
    requestId,
    // Browser pages must be able to read the rejection. As in a runtime's responses, no cookies are involved.
    'access-control-allow-origin',
    '*',
    'access-control-expose-headers',
    rejection.isQuota === true
      ? `Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, ${requestIdHeader}`
      : `Retry-After, ${requestIdHeader}`,
  ]
  if (rejection.headers !== undefined) list.push(...rejection.headers)
  if (rejection.retryAfter !== undefined) list.push('retry-after', String(rejection.retryAfter))
  if (rejection.status === 405) list.push('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  if (close || rejection.close === true) list.push('connection', 'close')
  return list
}
