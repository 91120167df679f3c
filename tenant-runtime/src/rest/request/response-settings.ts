// What a tenant's functions set of the response: the settings `response.headers` and `response.status`, and the same in
// `raise sqlstate 'PGRST'`. Pure.
import type { ResponseHeaders } from '../../errors.ts'
import { restError } from '../rest-error.ts'

export interface ResponseSettings {
  headers: ResponseHeaders
  status: number | undefined
}

/** The maximum number of characters of `response.headers`. Clients and proxies reject responses with longer heads. */
const maxHeadersLength = 8_192

/**
 * Headers that functions cannot set. They determine where the response ends and how it is encoded, what a browser may do
 * with the responses of the whole host, or they belong to the gateway.
 */
const reserved: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'connection',
  'content-encoding',
  'content-length',
  'content-security-policy',
  'content-security-policy-report-only',
  'cross-origin-embedder-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'date',
  'keep-alive',
  'nel',
  'origin-agent-cluster',
  'permissions-policy',
  'proxy-authenticate',
  'proxy-status',
  'report-to',
  'reporting-endpoints',
  'server',
  'server-timing',
  'service-worker-allowed',
  'sourcemap',
  'strict-transport-security',
  'te',
  'timing-allow-origin',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'vary',
  'via',
  'x-content-type-options',
  'x-request-id',
])
const reservedPrefixes = ['access-control-', 'sec-', 'x-tenantry-']

/**
 * Reads the settings of a response. An empty text is a setting that no function has made.
 * @param basePath the path of the tenant, to which cookies are limited
 * @throws RuntimeError RAISED (PGRST111, PGRST112)
 */
export function readResponseSettings(headers: string, status: string, basePath: string): ResponseSettings | undefined {
  if (headers === '' && status === '') return undefined
  return {
    headers: headers === '' ? {} : headersOf(entriesIn(headers), basePath),
    status: status === '' ? undefined : statusOf(status),
  }
}

/** Returns the headers that a function may set. `entries` are names with their values, in order. */
export function headersOf(entries: readonly (readonly [string, string])[], basePath: string): ResponseHeaders {
  const found: Record<string, string | string[]> = {}
  for (const [given, value] of entries) {
    const name = given.toLowerCase()
    if (reserved.has(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix))) continue
    const before = found[name]
    if (name === 'set-cookie') found[name] = [...(Array.isArray(before) ? before : []), ownCookie(value, basePath)]
    else found[name] = typeof before === 'string' ? `${before}, ${value}` : value
  }
  return found
}

/** Whether the name and the value can be sent as a header. */
export function isHeader(name: string, value: unknown): value is string {
  return /^[\w!#$%&'*+.^`|~-]{1,100}$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value)
}

function entriesIn(text: string): [string, string][] {
  const invalid = () =>
    restError('RAISED', {
      code: 'PGRST111',
      message: 'response.headers guc must be a JSON array composed of objects with a single key and a string value',
    })
  if (text.length > maxHeadersLength) throw invalid()
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    throw invalid()
  }
  if (!Array.isArray(list)) throw invalid()
  return list.map((one: unknown) => {
    const [entry, ...others] = typeof one === 'object' && one !== null ? Object.entries(one) : []
    if (entry === undefined || others.length > 0 || !isHeader(entry[0], entry[1])) throw invalid()
    return [entry[0], entry[1]]
  })
}

function statusOf(text: string): number {
  if (/^[2-5]\d\d$/.test(text)) return Number(text)
  throw restError('RAISED', { code: 'PGRST112', message: 'response.status guc must be a valid status code' })
}

/** Limits a cookie to the tenant: to its host, and to its path where tenants share a host. */
function ownCookie(cookie: string, basePath: string): string {
  const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim())
  const dropped = basePath === '' ? /^domain(?:\s*=|$)/i : /^(?:domain|path)(?:\s*=|$)/i
  const own = attributes.filter((attribute) => !dropped.test(attribute))
  return [pair, ...own, ...(basePath === '' ? [] : [`Path=${basePath}`])].join('; ')
}
