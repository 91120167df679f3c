// The requests of `http_fetch`: parses them, follows redirects, and filters headers in both directions. Pure.
import type { IncomingHttpHeaders } from 'node:http'
import { CallError } from './call-error.ts'
import { textOf } from './read-parts.ts'

export interface FetchRequest {
  method: string
  url: URL
  /** Headers by their names in lower case. */
  headers: Readonly<Record<string, string>>
  body: Buffer
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const maxHeaders = 64
const maxHeaderBytes = 32 * 1024
const maxUrlLength = 8 * 1024

/** Headers of the connection, which only the host sets. */
const connectionHeaders =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|http2-settings|proxy-.*)$/
/** Headers that are removed when a redirect leads to another origin. */
const credentials = ['authorization', 'cookie']
const bodyHeaders = /^content-/

/** Parses a request. @param parts the request as JSON, and its body. @throws CallError INVALID_REQUEST with the reason */
export function readRequest(parts: readonly Buffer[]): FetchRequest {
  const { method = 'GET', url, headers = {}, ...others } = parsed(textOf(parts[0]))
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(`Unknown field ${shown(unknown)}. Allowed: method, url, headers.`)
  if (typeof method !== 'string' || !methods.includes(method.toUpperCase()))
    throw invalid(`"method" must be one of ${methods.join(', ')}.`)
  if (typeof url !== 'string' || url.length > maxUrlLength)
    throw invalid(`"url" must be a string of at most ${maxUrlLength} characters.`)
  const body = parts[1] ?? Buffer.alloc(0)
  const name = method.toUpperCase()
  if (body.length > 0 && (name === 'GET' || name === 'HEAD')) throw invalid(`A ${name} request must not have a body.`)
  return { method: name, url: readUrl(url), headers: readHeaders(headers), body }
}

/** Returns the next request after a redirect; undefined if the response is not one. @throws CallError INVALID_REQUEST */
export function redirected(
  { method, url, headers, body }: FetchRequest,
  status: number,
  location: string | undefined,
): FetchRequest | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined
  const next = readUrl(location, url)
  if (url.protocol === 'https:' && next.protocol === 'http:') throw invalid('A redirect leads from https to http.')
  // RFC 9110, section 15.4.
  const isRead = method !== 'GET' && method !== 'HEAD' && (status === 303 || (status < 303 && method === 'POST'))
  const remaining = Object.entries(headers).filter(
    ([header]) =>
      !(isRead && bodyHeaders.test(header)) && (next.origin === url.origin || !credentials.includes(header)),
  )
  return {
    method: isRead ? 'GET' : method,
    url: next,
    headers: Object.fromEntries(remaining),
    body: isRead ? Buffer.alloc(0) : body,
  }
}

/** Returns all headers that are sent with a request. */
export function sentHeaders({ method, url, headers, body }: FetchRequest): Record<string, string> {
  return {
    ...headers,
    host: url.host,
    connection: 'close',
    ...(body.length > 0 || /^P/.test(method) ? { 'content-length': String(body.length) } : {}),
  }
}

/** Returns the bytes of a request as it is sent, before encryption: its first line, headers and body. */
export function bytesOf(request: FetchRequest): number {
  const { method, url, body } = request
  const lines = [
    `${method} ${url.pathname}${url.search} HTTP/1.1`,
    ...Object.entries(sentHeaders(request)).map(([name, value]) => `${name}: ${value}`),
    '',
  ]
  // The head is Latin-1, and each of its lines ends with two bytes.
  return lines.reduce((sum, line) => sum + line.length + 2, body.length)
}

/** Returns the headers of a response without those of the connection. */
export function responseHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const shown: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && (name === 'content-length' || !connectionHeaders.test(name))) shown[name] = value
  return shown
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null || url.hostname === '') throw invalid('"url" is not a valid URL.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw invalid('"url" must begin with http:// or https://.')
  if (url.username !== '' || url.password !== '')
    throw invalid('"url" must not have a user or password. Send them in a header.')
  return url
}

function readHeaders(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('"headers" must be an object.')
  const entries = Object.entries(value)
  if (entries.length > maxHeaders) throw invalid(`The request has more than ${maxHeaders} headers.`)
  const headers: Record<string, string> = {}
  let bytes = 0
  for (const [given, text] of entries) {
    const name = given.toLowerCase()
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) || name in headers || name === '__proto__')
      throw invalid(`The header ${shown(given)} is not a valid name, or is repeated.`)
    if (connectionHeaders.test(name)) throw invalid(`The header ${shown(given)} is set by the host.`)
    if (typeof text !== 'string' || !/^[\t\x20-\x7e\x80-\xff]*$/.test(text))
      throw invalid(`The header ${shown(given)} must be a string of Latin-1 characters without line breaks.`)
    headers[name] = text
    bytes += name.length + text.length
  }
  if (bytes > maxHeaderBytes) throw invalid(`The headers have more than ${maxHeaderBytes} bytes.`)
  headers['user-agent'] ??= 'tenantry'
  return headers
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // The error below has the message.
  }
  throw invalid('The request must be a JSON object.')
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}

function invalid(why: string): CallError {
  return new CallError('INVALID_REQUEST', `http_fetch: ${why}`)
}
