// The error form of every tenant-facing and operator-facing route (specification, section 7).
import { Type, type Static } from 'typebox'

/** The body of an error. `statusCode` repeats the HTTP status as text, because storage clients compare it. */
export const ErrorBody = Type.Object({
  statusCode: Type.String(),
  /** Short tag of the status. */
  error: Type.String(),
  /** Text for a person: what is wrong, and where. */
  message: Type.String(),
  /** Stable code for a program. */
  code: Type.String(),
})
export type ErrorBody = Static<typeof ErrorBody>
