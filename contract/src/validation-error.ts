// Describes errors of a request's validation in terms of the caller's fields. Pure.

/** One of Ajv's errors. */
export interface ValidationError {
  keyword: string
  /** JSON pointer of the value. */
  instancePath: string
  schemaPath: string
  message?: string
  params: Record<string, unknown>
}

/** A violation in a request: an unknown field, a missing field, or an invalid value. */
export type Violation =
  | { kind: 'unknown' | 'missing'; name: string }
  /** `wanted` follows the field's name in a message, for example `must be integer`. */
  | { kind: 'invalid'; name: string; wanted: string }

/**
 * Converts a validator's error to a violation.
 * @returns the violation with the field's name, with dots between its parts; the name of the body or query itself is
 * empty
 */
export function violationOf(error: ValidationError | undefined): Violation {
  const path = (error?.instancePath ?? '').replace(/^\//, '').replaceAll('/', '.')
  const named = (text: unknown) => (path === '' ? String(text) : `${path}.${String(text)}`)
  switch (error?.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return {
        kind: 'unknown',
        name: named(error.params['additionalProperty'] ?? error.params['unevaluatedProperty']),
      }
    case 'required':
      return { kind: 'missing', name: named(error.params['missingProperty']) }
  }
  const allowed = error?.params['allowedValues']
  return {
    kind: 'invalid',
    name: path,
    wanted: Array.isArray(allowed) ? `must be one of ${allowed.join(', ')}` : (error?.message ?? 'is invalid'),
  }
}
