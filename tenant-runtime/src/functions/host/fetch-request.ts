// A request as a function asks for it, and what becomes of it after a redirect; the headers that go either way. Pure.
import type { IncomingHttpHeaders } from 'node:http'
import { CallError } from './call-error.ts'
import { textOf } from './read-parts.ts'

export interface FetchRequest {
  method: string
  url: URL
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  body: Buffer
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const maxHeaders = 64
const maxHeaderBytes = 32 * 1024
const maxUrlLength = 8 * 1024

/** They are of the connection, which is the host's affair. */
const ofConnection =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|http2-settings|proxy-.*)$/
/** They are for the host they were meant for. */
const credentials = ['authorization', 'cookie']
const ofBody = /^content-/

/** @param parts the request as JSON, and its body. @throws CallError INVALID_REQUEST that says what is wrong */
export function readRequest(parts: readonly Buffer[]): FetchRequest {
  const { method = 'GET', url, headers = {}, ...others } = parsed(textOf(parts[0]))
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(`unknown member ${shown(unknown)}; there are method, url and headers`)
  if (typeof method !== 'string' || !methods.includes(method.toUpperCase()))
    throw invalid(`"method" must be one of ${methods.join(', ')}`)
  if (typeof url !== 'string' || url.length > maxUrlLength)
    throw invalid(`"url" must be a text of at most ${maxUrlLength} characters`)
  const body = parts[1] ?? Buffer.alloc(0)
  const name = method.toUpperCase()
  if (body.length > 0 && (name === 'GET' || name === 'HEAD')) throw invalid(`${name} takes no body`)
  return { method: name, url: readUrl(url), headers: readHeaders(headers), body }
}

/** The request that an answer asks for instead; undefined when it asks for none. @throws CallError INVALID_REQUEST */
export function redirected(
  { method, url, headers, body }: FetchRequest,
  status: number,
  location: string | undefined,
): FetchRequest | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined
  const next = readUrl(location, url)
  if (url.protocol === 'https:' && next.protocol === 'http:') throw invalid('a redirect leads from https to http')
  // RFC 9110, section 15.4.
  const isRead = method !== 'GET' && method !== 'HEAD' && (status === 303 || (status < 303 && method === 'POST'))
  const stored = Object.entries(headers).filter(
    ([header]) => !(isRead && ofBody.test(header)) && (next.origin === url.origin || !credentials.includes(header)),
  )
  return {
    method: isRead ? 'GET' : method,
    url: next,
    headers: Object.fromEntries(stored),
    body: isRead ? Buffer.alloc(0) : body,
  }
}

/** Of an answer, without those of the connection. */
export function responseHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const shown: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && (name === 'content-length' || !ofConnection.test(name))) shown[name] = value
  return shown
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null || url.hostname === '') throw invalid('"url" is no URL')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw invalid('"url" must begin with http:// or https://')
  if (url.username !== '' || url.password !== '')
    throw invalid('"url" must have no user and password; send them in a header')
  return url
}

function readHeaders(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('"headers" must be an object')
  const entries = Object.entries(value)
  if (entries.length > maxHeaders) throw invalid(`there are more than ${maxHeaders} headers`)
  const headers: Record<string, string> = {}
  let bytes = 0
  for (const [given, text] of entries) {
    const name = given.toLowerCase()
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) || name in headers || name === '__proto__')
      throw invalid(`${shown(given)} is no name of a header, or is there twice`)
    if (ofConnection.test(name)) throw invalid(`the header ${shown(given)} is set by the host`)
    if (typeof text !== 'string' || !/^[\t\x20-\x7e\x80-\xff]*$/.test(text))
      throw invalid(`the header ${shown(given)} must be a text of Latin letters, without line breaks`)
    headers[name] = text
    bytes += name.length + text.length
  }
  if (bytes > maxHeaderBytes) throw invalid(`the headers have more than ${maxHeaderBytes} bytes`)
  headers['user-agent'] ??= 'tenantry'
  return headers
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Falls through to the one message.
  }
  throw invalid('the request must be a JSON object')
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}

function invalid(why: string): CallError {
  return new CallError('INVALID_REQUEST', `http_fetch: ${why}`)
}
