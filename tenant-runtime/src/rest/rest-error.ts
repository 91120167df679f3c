// Errors of the REST interface: the service's format and PostgREST's in one body.
import { nearest } from '@tenantry/contract'
import { RuntimeError, type ErrorCode } from '../errors.ts'

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
}

export function restError(
  kind: ErrorCode,
  { code, message, details, hint, cause, status }: RestErrorParts,
): RuntimeError {
  return new RuntimeError(kind, message, {
    cause,
    ...(status === undefined ? {} : { status }),
    extra: { code, details: details ?? null, hint: hint ?? null },
  })
}

/** Returns the hint of an error about an unknown name, if a known one is similar. */
export function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const meant = nearest(name, known)
  return meant === undefined ? {} : { hint: `Did you mean "${meant}"?` }
}
