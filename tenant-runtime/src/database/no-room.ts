// Errors of round trips whose results have no room in memory. Pure.
import { RuntimeError } from '../errors.ts'
import { RoundTripError } from './round-trip-error.ts'

/** Returns the error of a round trip that ended because the memory for results had no room, or undefined. */
export function withoutRoom(error: unknown): RuntimeError | undefined {
  return error instanceof RoundTripError && error.cause instanceof RuntimeError ? error.cause : undefined
}

/** Returns the error of a change whose result had no room, and whose outcome is unknown. */
export function unknownOutcome(cause: RuntimeError): RuntimeError {
  return new RuntimeError(
    'SERVICE_BUSY',
    'There is no memory for the result of the change, which may have been made. Read the records before you retry.',
    { cause },
  )
}
