// The head of a runtime's response as the client receives it.
import { internalHeaderPrefix, rejectedHeader, requestIdHeader } from '@tenantry/contract'

export interface ResponseHead {
  /** Name, value, … for `writeHead`. */
  headers: string[]
  /** The number of bytes of the body, when the runtime states it and a body follows. */
  length: number | undefined
  isEventStream: boolean
  /** Whether the runtime rejected the request before it touched anything of the tenant. */
  isRejected: boolean
}

/** The maximum size of a rejection's body. A larger response is not a rejection, whatever the runtime states. */
const maxRejectionBytes = 4_096

/** A runtime's headers as either HTTP client reports them: repeated ones are arrays. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * Makes the client's head. Drops hop-by-hop headers, headers named by Connection, `x-tenantry-*` and the runtime's own
 * request ID. The server frames the body again, so Content-Length stays only where the body is not chunked.
 * @param response headers with lower-case names
 */
export function responseHead(response: ResponseHeaders, requestId: string, status: number): ResponseHead {
  const headers = [requestIdHeader, requestId]
  const { connection } = response
  const named = typeof connection === 'string' ? namedBy(connection) : namedBy(String(connection ?? ''))
  const isChunked = response['transfer-encoding'] !== undefined
  for (const name of Object.keys(response)) {
    if (notForClients.has(name) || name.startsWith(internalHeaderPrefix)) continue
    if (named !== undefined && named.includes(name)) continue
    if (name === 'content-length' && (isChunked || status === 204)) continue
    const value = response[name]
    if (typeof value === 'string') headers.push(name, value)
    else if (value !== undefined) for (const one of value) headers.push(name, one)
  }
  const length = isChunked ? Number.NaN : Number(response['content-length'])
  const contentType = response['content-type']
  const isError = status >= 400 && length <= maxRejectionBytes
  return {
    headers,
    length: Number.isSafeInteger(length) ? length : undefined,
    isRejected: isError && response[rejectedHeader] === '1',
    isEventStream: typeof contentType === 'string' && contentType.startsWith('text/event-stream'),
  }
}

const notForClients = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  requestIdHeader,
])

function namedBy(connection: string): string[] | undefined {
  if (connection === '' || connection === 'keep-alive' || connection === 'close') return undefined
  return connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
}
