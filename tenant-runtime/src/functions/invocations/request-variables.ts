// Environment variables that describe the request to the function. The body is its standard input. Pure.
import { internalHeaderPrefix } from '@tenantry/contract'

/** Headers that functions do not receive: credentials, which the runtime checks, and those of the connection or the body. */
const withheld = new Set([
  'authorization',
  'apikey',
  'cookie',
  'proxy-authorization',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
  'host',
])

export interface RequestHead {
  method: string
  url: string
  headers: NodeJS.Dict<string | string[]>
}

/** Returns the variables. Their size is at most that of the request's head, which the server limits. */
export function requestVariables({ method, url, headers }: RequestHead): Record<string, string | undefined> {
  const begin = url.indexOf('?')
  const shown = Object.entries(headers).filter(
    ([name]) => !withheld.has(name) && !name.startsWith(internalHeaderPrefix),
  )
  const [contentType] = [headers['content-type']].flat()
  return {
    TENANTRY_METHOD: method,
    TENANTRY_QUERY: begin < 0 ? '' : url.slice(begin + 1),
    TENANTRY_CONTENT_TYPE: contentType,
    TENANTRY_HEADERS: JSON.stringify(
      Object.fromEntries(shown.map(([name, value]) => [name, [value].flat().join(', ')])),
    ),
  }
}
