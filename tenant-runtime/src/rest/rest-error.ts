// Errors of the REST interface: the service's format and PostgREST's in one body.
import { nearest } from '@tenantry/contract'
import { RuntimeError, type ErrorCode, type ResponseHeaders } from '../errors.ts'

interface RestErrorParts {
  /** PostgREST's code or an SQLSTATE, which clients compare. */
  code: string
  message: string
  /** An explanation; for an ambiguous name, the alternatives. */
  details?: string | readonly Record<string, string>[]
  hint?: string
  cause?: unknown
  /** The status that a tenant's own code requests. */
  status?: number
  /** Headers that a tenant's own code sets. */
  headers?: ResponseHeaders
}

export function restError(
  kind: ErrorCode,
  { code, message, details, hint, cause, status, headers }: RestErrorParts,
): RuntimeError {
  return new RuntimeError(kind, message, {
    cause,
    ...(status === undefined ? {} : { status }),
    extra: { code, details: details ?? null, hint: hint ?? null },
    // A response to HEAD has no body, so a header states the code.
    headers: { ...(/^\w{1,20}$/.test(code) ? { 'proxy-status': `PostgREST; error=${code}` } : {}), ...headers },
  })
}

/** Returns the hint of an error about an unknown name, if a known one is similar. */
export function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const meant = nearest(name, known)
  return meant === undefined ? {} : { hint: `Did you mean "${meant}"?` }
}
