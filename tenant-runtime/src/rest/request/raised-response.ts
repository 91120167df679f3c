// The whole response of an error that a tenant's code raises: `raise sqlstate 'PGRST'`, with the body as JSON in the message,
// and the status and the headers as JSON in the detail. Pure.
import type { RuntimeError } from '../../errors.ts'
import { restError } from '../rest-error.ts'
import { headersOf, isHeader } from './response-settings.ts'

interface RaisedBody {
  code: string
  message: string
  details: string | null
  hint: string | null
}

interface RaisedHead {
  status: number
  headers: [name: string, value: string][]
}

/**
 * Returns the error that the code describes, or one that states what is wrong with the description.
 * @param basePath the path of the tenant, to which cookies are limited
 */
export function raisedResponse(
  message: string,
  detail: string | undefined,
  basePath: string,
  cause: unknown,
): RuntimeError {
  const body = bodyIn(parsed(message))
  if (body === undefined)
    return malformed(
      `Invalid JSON value for MESSAGE: '${message.slice(0, 100)}'`,
      "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.",
      cause,
    )
  const head = headIn(parsed(detail ?? ''))
  if (head === undefined)
    return malformed(
      detail === undefined
        ? 'DETAIL is missing in the RAISE statement'
        : `Invalid JSON value for DETAIL: '${detail.slice(0, 100)}'`,
      "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'.",
      cause,
    )
  const { details, hint } = body
  return restError('RAISED', {
    code: body.code,
    message: body.message,
    ...(details === null ? {} : { details }),
    ...(hint === null ? {} : { hint }),
    status: head.status,
    headers: headersOf(head.headers, basePath),
    cause,
  })
}

function malformed(details: string, hint: string, cause: unknown): RuntimeError {
  return restError('RAISED', {
    code: 'PGRST121',
    message: 'Could not parse JSON in the "RAISE SQLSTATE \'PGRST\'" error',
    details,
    hint,
    cause,
  })
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

function bodyIn(value: Record<string, unknown> | undefined): RaisedBody | undefined {
  const { code, message, details = null, hint = null } = value ?? {}
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  if ((details !== null && typeof details !== 'string') || (hint !== null && typeof hint !== 'string')) return undefined
  return { code, message, details, hint }
}

function headIn(value: Record<string, unknown> | undefined): RaisedHead | undefined {
  const { status, headers } = value ?? {}
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) return undefined
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return undefined
  const entries = Object.entries(headers as Record<string, unknown>)
  const valid = entries.flatMap(([name, header]): [string, string][] =>
    isHeader(name, header) ? [[name, header]] : [],
  )
  return valid.length === entries.length && JSON.stringify(valid).length <= 8_192
    ? { status, headers: valid }
    : undefined
}
