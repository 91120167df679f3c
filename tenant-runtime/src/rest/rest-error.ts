// Errors of the REST interface: the service's form and PostgREST's in one body.
import { nearest } from '@tenantry/contract'
import { RuntimeError, type ErrorCode } from '../errors.ts'

interface RestErrorParts {
  /** PostgREST's code or an SQLSTATE: the one clients compare. */
  code: string
  message: string
  /** In words; of something ambiguous, what there is to choose from. */
  details?: string | readonly Record<string, string>[]
  hint?: string
  cause?: unknown
  /** Where a tenant's own code says which. */
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

/** For an error's parts: the name that was meant, perhaps. */
export function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const meant = nearest(name, known)
  return meant === undefined ? {} : { hint: `did you mean "${meant}"?` }
}
