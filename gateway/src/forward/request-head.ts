// Reads a client's request head strictly, once: rejects contradictions and drops headers that are not for a runtime.
import { consoleCookie, internalHeaderPrefix, requestIdHeader } from '@tenantry/contract'
import { rejections, type Rejection } from '../errors.ts'
import type { Limits } from '../limits.ts'

/** The head as `node:http` reports it. */
interface RawHead {
  httpVersion: string
  url: string
  /** The headers as a list of names and values. */
  rawHeaders: readonly string[]
}

export interface RequestHead {
  /** The one Host header. */
  host: string
  /** The path and query as sent; for an absolute target, what follows the authority. */
  path: string
  /** End-to-end headers of the client (name, value, …) without Host, Content-Length and those that the gateway sets. */
  headers: string[]
  /** Digits, or undefined without the header. */
  contentLength: string | undefined
  hasBody: boolean
  /** The client's own request ID, when it is valid. */
  requestId: string | undefined
  /** The protocols that the client requests with `Upgrade`. */
  upgrade: string | undefined
  wantsEventStream: boolean
  /**
   * The client's `x-forwarded-*` headers, repeated ones joined by commas. They are trustworthy only from trusted proxies.
   */
  forwarded: { for: string; proto: string; host: string }
}

/**
 * Reads a request head.
 * Rejects: a missing, repeated or malformed Host; a length that is given twice or in two ways; any transfer coding but
 * `chunked`; a target that is neither a path nor an absolute URL of that host; URLs and headers that are too long.
 * Drops: hop-by-hop headers, headers named by Connection, all of `x-tenantry-*`, all forms of `forwarded`.
 */
export function readRequestHead(raw: RawHead, limits: Limits): RequestHead | Rejection {
  if (raw.url.length > limits.urlBytes) return rejections.urlTooLong
  const headers: string[] = []
  let size = 0
  let host: string | undefined
  let contentLength: string | undefined
  let chunked = false
  let connection = ''
  let requestId: string | undefined
  let requestIds = 0
  let upgrade: string | undefined
  let wantsEventStream = false
  const forwarded = { for: '', proto: '', host: '' }
  const { rawHeaders } = raw
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const value = rawHeaders[at + 1] ?? ''
    size += name.length + value.length + 4
    const lower = name.toLowerCase()
    switch (lower) {
      case 'host':
        if (host !== undefined) return rejections.invalidHost
        host = value
        break
      case 'content-length':
        if (contentLength !== undefined || !digits.test(value)) return rejections.invalidFraming
        contentLength = value
        break
      case 'transfer-encoding':
        if (chunked || value.toLowerCase() !== 'chunked') return rejections.invalidFraming
        chunked = true
        break
      case 'connection':
        connection += `,${value}`
        break
      case requestIdHeader:
        requestIds++
        requestId = value
        break
      case 'upgrade':
        upgrade = upgrade === undefined ? value : `${upgrade}, ${value}`
        break
      case 'expect':
        if (value.toLowerCase() !== '100-continue') return rejections.expectationFailed
        break
      case 'x-forwarded-for':
        forwarded.for = joinValues(forwarded.for, value)
        break
      case 'x-forwarded-proto':
        forwarded.proto = joinValues(forwarded.proto, value)
        break
      case 'x-forwarded-host':
        forwarded.host = joinValues(forwarded.host, value)
        break
      case 'accept':
        if (value.includes('text/event-stream')) wantsEventStream = true
        headers.push(name, value)
        break
      case 'cookie': {
        const cookies = withoutConsoleCookie(value)
        if (cookies !== '') headers.push(name, cookies)
        break
      }
      default:
        if (!notForRuntimes.has(lower) && !lower.startsWith(internalHeaderPrefix)) headers.push(name, value)
    }
  }
  if (size > limits.headerBytes) return rejections.headersTooLarge
  if (host === undefined || !isHost(host)) return rejections.invalidHost
  if (chunked && (contentLength !== undefined || raw.httpVersion !== '1.1')) return rejections.invalidFraming
  const path = raw.url.startsWith('/') ? raw.url : pathOfAbsolute(raw.url, host)
  if (path === undefined) return rejections.invalidTarget
  return {
    host,
    path,
    headers: connection === '' ? headers : withoutNamed(headers, connection),
    contentLength,
    hasBody: chunked || (contentLength !== undefined && !zeros.test(contentLength)),
    requestId: requestIds === 1 && requestId !== undefined && usableId.test(requestId) ? requestId : undefined,
    upgrade,
    wantsEventStream,
    forwarded,
  }
}

/** Whether the text is a valid value of a Host header. */
export function isHost(text: string): boolean {
  return validHost.test(text)
}

export function isRejection(value: RequestHead | Rejection): value is Rejection {
  return 'status' in value
}

/** Hop-by-hop headers (RFC 9110, 7.6.1), and those that only the gateway may set. */
const notForRuntimes = new Set([
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'http2-settings',
  'forwarded',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-real-ip',
])

const digits = /^[0-9]{1,15}$/
const zeros = /^0+$/
const validHost = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/
const usableId = /^[A-Za-z0-9._:/+=-]{1,128}$/

function joinValues(before: string, value: string): string {
  return before === '' ? value : `${before},${value}`
}

/** Drops the headers that Connection names. The usual options name no header. */
function withoutNamed(headers: string[], connection: string): string[] {
  const named = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '' && option !== 'keep-alive' && option !== 'close' && option !== 'upgrade')
  if (named.length === 0) return headers
  const remaining: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? ''
    if (!named.includes(name.toLowerCase())) remaining.push(name, headers[at + 1] ?? '')
  }
  return remaining
}

/** Returns the path of `http://host/path`, which clients send to a proxy. The host must equal the Host header. */
function pathOfAbsolute(url: string, host: string): string | undefined {
  const match = /^https?:\/\/([^/?#]+)(.*)$/is.exec(url)
  if (match?.[1]?.toLowerCase() !== host.toLowerCase()) return undefined
  const path = match[2] ?? ''
  return path.startsWith('/') ? path : `/${path}`
}

/** Returns the cookies without the one of the operators' console, which a browser sends to all ports of a host. */
function withoutConsoleCookie(cookies: string): string {
  if (!cookies.includes(consoleCookie)) return cookies
  return cookies
    .split(';')
    .filter((pair) => pair.split('=', 1)[0]?.trim() !== consoleCookie)
    .join(';')
    .trim()
}
