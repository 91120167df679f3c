// What a function is told of the request that called it, in its environment; the body is its standard input. Pure.
import { internalHeaderPrefix } from '@tenantry/contract'

/** Credentials are the runtime's to check and nobody's to keep; the others speak of one connection, or of the body as it came. */
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

/** Of the size of a request's head at most, which is limited where it is read. */
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
