// `Accept`: the format of a response. Pure.
import { restError } from '../rest-error.ts'

export type Format =
  | {
      kind: 'json'
      /** Whether exactly one row is returned as an object. */ singular: boolean
      /** Whether fields that are null are omitted. */ stripped: boolean
    }
  | { kind: 'csv' }
  | { kind: 'openapi' }

export const plainJson: Format = { kind: 'json', singular: false, stripped: false }

/**
 * Returns the first known format in the header's order.
 * @throws RuntimeError NOT_ACCEPTABLE (PGRST107) when none is known
 */
export function readAccept(header: string | undefined): Format {
  if (header === undefined || header === '*/*' || header === 'application/json') return plainJson
  for (const part of header.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const stripped = parameters.includes('nulls=stripped')
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

/** Returns the format's `Content-Type`. */
export function contentType(format: Format): string {
  if (format.kind === 'csv') return 'text/csv; charset=utf-8'
  if (format.kind === 'openapi') return 'application/openapi+json; charset=utf-8'
  if (format.singular)
    return `application/vnd.pgrst.object+json;${format.stripped ? ' nulls=stripped;' : ''} charset=utf-8`
  return format.stripped
    ? 'application/vnd.pgrst.array+json; nulls=stripped; charset=utf-8'
    : 'application/json; charset=utf-8'
}
