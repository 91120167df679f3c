// `Accept`: the format of a response. Pure.
import type { MediaHandler } from '../registry/catalog.ts'
import { restError } from '../rest-error.ts'

export type Format =
  | {
      kind: 'json'
      /** Whether exactly one row is returned as an object. */ singular: boolean
      /** Whether fields that are null are omitted. */ stripped: boolean
    }
  | { kind: 'csv' }
  | { kind: 'openapi' }
  | { kind: 'media'; /** The media type of the response. */ type: string; handler: MediaHandler }

export const plainJson: Format = { kind: 'json', singular: false, stripped: false }

/**
 * Returns the first known format, in the order that the client prefers.
 * @param mediaOf returns the formats that the tenant's own functions make, which precede those of the interface
 * @throws RuntimeError NOT_ACCEPTABLE (PGRST107) when none is known
 */
export function readAccept(header: string | undefined, mediaOf?: (type: string) => Format | undefined): Format {
  if (mediaOf === undefined && (header === undefined || header === '*/*' || header === 'application/json'))
    return plainJson
  for (const part of byPreference(header ?? '*/*')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const stripped = parameters.includes('nulls=stripped')
    const media = type.startsWith('application/vnd.pgrst.') ? undefined : mediaOf?.(type === '' ? '*/*' : type)
    if (media !== undefined) return media
    switch (type) {
      case '':
      case '*/*':
      case 'application/*':
      case 'application/json':
      case 'application/vnd.pgrst.array':
      case 'application/vnd.pgrst.array+json':
        return { kind: 'json', singular: false, stripped }
      case 'application/vnd.pgrst.object':
      case 'application/vnd.pgrst.object+json':
        return { kind: 'json', singular: true, stripped }
      case 'text/csv':
        return { kind: 'csv' }
      case 'application/openapi+json':
        return { kind: 'openapi' }
    }
  }
  throw notAcceptable(header)
}

/** Returns the parts of the header, those with a higher `q` first. */
function byPreference(header: string): string[] {
  const parts = header.split(',')
  if (!/;\s*q=/i.test(header)) return parts
  const quality = (part: string) => Number(/;\s*q=([\d.]{1,5})/i.exec(part)?.[1] ?? 1)
  return parts.sort((a, b) => quality(b) - quality(a))
}

export function notAcceptable(header = '') {
  return restError('NOT_ACCEPTABLE', {
    code: 'PGRST107',
    message: `None of these media types are available: ${header}`,
  })
}

/** Whether exactly one row is requested. */
export function isSingular(format: Format): boolean {
  return format.kind === 'json' && format.singular
}

/** Media types whose encoding the response states. */
const textual: ReadonlySet<string> = new Set([
  'application/geo+json',
  'application/json',
  'text/csv',
  'text/plain',
  'text/xml',
])

/** Returns the format's `Content-Type`. */
export function contentType(format: Format): string {
  if (format.kind === 'media') return textual.has(format.type) ? `${format.type}; charset=utf-8` : format.type
  if (format.kind === 'csv') return 'text/csv; charset=utf-8'
  if (format.kind === 'openapi') return 'application/openapi+json; charset=utf-8'
  if (format.singular)
    return `application/vnd.pgrst.object+json;${format.stripped ? 'nulls=stripped;' : ''} charset=utf-8`
  return format.stripped
    ? 'application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8'
    : 'application/json; charset=utf-8'
}
