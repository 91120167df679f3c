// What the validator of a request's schema found, in terms of the caller's fields. Pure.

/** One of Ajv's errors. */
export interface ValidationError {
  keyword: string
  /** JSON pointer of the value. */
  instancePath: string
  schemaPath: string
  message?: string
  params: Record<string, unknown>
}

/** What is wrong with a request: a field that is not known, one that is missing, or one whose value is invalid. */
export type Violation =
  | { kind: 'unknown' | 'missing'; name: string }
  /** `wanted` follows the field's name in a message, such as `must be integer`. */
  | { kind: 'invalid'; name: string; wanted: string }

/**
 * Puts a validator's error in terms of the caller's fields.
 * @returns the violation with the field's name, its parts between dots; the name of the body or query itself is empty
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
