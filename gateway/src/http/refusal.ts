// The gateway's own answers, in the one error form: on a response, or raw on a connection that has none.
import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { requestIdHeader } from '@tenantry/contract'
import { errorBody, type Refusal } from '../errors.ts'

/** Writes the head. @returns the body, still to be written */
export function beginRefusal(response: ServerResponse, refusal: Refusal, requestId: string, close: boolean): Buffer {
  const body = Buffer.from(JSON.stringify(errorBody(refusal)))
  response.writeHead(refusal.status, headers(refusal, body.length, requestId, close))
  return body
}

/** For what could not be read as a request at all. Ends the connection. */
export function writeRawRefusal(socket: Duplex, refusal: Refusal, requestId: string): void {
  const body = JSON.stringify(errorBody(refusal))
  const lines = headers(refusal, Buffer.byteLength(body), requestId, true)
  let head = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\n`
  for (let at = 0; at + 1 < lines.length; at += 2) head += `${lines[at] ?? ''}: ${lines[at + 1] ?? ''}\r\n`
  socket.end(`${head}\r\n${body}`)
}

function headers(refusal: Refusal, length: number, requestId: string, close: boolean): string[] {
  const list = [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(length),
    'cache-control',
    'no-store',
    requestIdHeader,
    requestId,
    // A page must be able to read why it was refused; as with a runtime's answers, no cookies are involved.
    'access-control-allow-origin',
    '*',
    'access-control-expose-headers',
    refusal.isQuota === true
      ? `Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, ${requestIdHeader}`
      : `Retry-After, ${requestIdHeader}`,
  ]
  if (refusal.headers !== undefined) list.push(...refusal.headers)
  if (refusal.retryAfter !== undefined) list.push('retry-after', String(refusal.retryAfter))
  if (refusal.status === 405) list.push('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  if (close || refusal.close === true) list.push('connection', 'close')
  return list
}
