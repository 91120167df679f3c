// Sends a request to a runtime of a test, and reads the whole response.
import { once } from 'node:events'
import {
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http'

export interface RequestOptions {
  /** The caller: a user's ID, `service`, or undefined for an unauthenticated caller. */
  as?: string | undefined
  headers?: OutgoingHttpHeaders
  /** Objects are sent as JSON, bytes and texts unchanged, and a list of chunks without a Content-Length. */
  body?: object | Buffer | string | Buffer[]
}

export interface ApiResponse {
  status: number
  headers: IncomingHttpHeaders
  bytes: Buffer
  text: string
  /** Returns the body as a JSON object. @throws Error when it is not one */
  json(): Record<string, unknown>
  /** Returns the body as a list of JSON objects. @throws Error when it is not one */
  list(): Record<string, unknown>[]
}

/** Sends one request with its path unchanged; `fetch` would normalise it. */
export async function send(
  port: number,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders = {},
  body?: RequestOptions['body'],
): Promise<ApiResponse> {
  const chunks =
    Array.isArray(body) && body.length > 0 && body.every((chunk) => Buffer.isBuffer(chunk)) ? body : undefined
  const plain = body === undefined || chunks !== undefined || typeof body === 'string' || Buffer.isBuffer(body)
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : plain ? undefined : JSON.stringify(body)
  const request = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port,
    method,
    path,
    headers: {
      ...(plain ? {} : { 'content-type': 'application/json' }),
      ...(bytes === undefined ? {} : { 'content-length': Buffer.byteLength(bytes) }),
      ...headers,
    },
  })
  const result = once(request, 'response') as Promise<[IncomingMessage]>
  // The runtime may respond and close the connection while the body is still being sent.
  request.on('error', () => undefined)
  for (const chunk of chunks ?? []) request.write(chunk)
  request.end(bytes)
  const [response] = await result
  const received: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) received.push(chunk)
  const all = Buffer.concat(received)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    bytes: all,
    text: all.toString('utf8'),
    json: () => parsed(all, false) as Record<string, unknown>,
    list: () => parsed(all, true) as Record<string, unknown>[],
  }
}

function parsed(bytes: Buffer, list: boolean): unknown {
  const value: unknown = JSON.parse(bytes.toString('utf8'))
  if (typeof value !== 'object' || value === null || Array.isArray(value) !== list) {
    throw new Error(`The body is not a JSON ${list ? 'list' : 'object'}: ${bytes.toString('utf8')}`)
  }
  return value
}
