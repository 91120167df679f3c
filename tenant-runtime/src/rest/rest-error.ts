// Errors of the REST interface: the service's form and PostgREST's in one body.
import { RuntimeError, type ErrorCode } from '../errors.ts'

export interface RestErrorParts {
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

export function restError(kind: ErrorCode, { code, message, details, hint, cause, status }: RestErrorParts): RuntimeError {
  return new RuntimeError(kind, message, { cause, ...(status === undefined ? {} : { status }), extra: { code, details: details ?? null, hint: hint ?? null } })
}

/** For an error's parts: the name that was meant, perhaps. */
export function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const meant = nearest(name, known)
  return meant === undefined ? {} : { hint: `did you mean "${meant}"?` }
}

/** The name among the known ones that is nearest to what was written, for "did you mean". */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: { name: string; distance: number } | undefined
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (best === undefined || distance < best.distance) best = { name: candidate, distance }
  }
  return best !== undefined && best.distance <= Math.max(2, name.length / 3) ? best.name : undefined
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitution))
    }
    row = next
  }
  return row[b.length] ?? 0
}
