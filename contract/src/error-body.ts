// The one error form on every tenant-facing and operator-facing route (specification, section 7).
import { Type, type Static } from 'typebox'

/** `statusCode` repeats the HTTP status as text: storage clients compare it. */
export const ErrorBody = Type.Object({
  statusCode: Type.String(),
  /** Short tag. */
  error: Type.String(),
  /** What was wrong and where, for a person. */
  message: Type.String(),
  /** Stable, for a program. */
  code: Type.String(),
})
export type ErrorBody = Static<typeof ErrorBody>
