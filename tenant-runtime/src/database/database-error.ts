// Maps errors of Postgres to the runtime's: the one module for SQLSTATEs and constraint names.
import { RuntimeError, type ErrorCode } from '../errors.ts'
import { MessageTooLongError } from './message-guard.ts'
import { RoundTripError } from './round-trip-error.ts'

/** Maps a constraint's name or an SQLSTATE to the error for the client. Modules add theirs to the general ones. */
export type ErrorMap = Record<string, (error: RoundTripError) => RuntimeError>

const general: ErrorMap = {
  '23502': (error) =>
    clientError(
      'MISSING_FIELD',
      error.column === undefined ? 'A required field is missing.' : `Field "${error.column}" is required.`,
      error,
    ),
  '23503': (error) =>
    clientError('CONFLICT', 'The record references a missing one, or another record references it.', error),
  '23505': (error) => clientError('DUPLICATE', 'A record with this key already exists.', error),
  '23514': (error) => clientError('INVALID_FIELD', 'A value is outside the range that its field allows.', error),
  '42501': (error) => clientError('ROW_DENIED', 'The row-level security policy does not allow this.', error),
  '57014': (error) => clientError('STATEMENT_TIMEOUT', 'The database did not finish the statement in time.', error),
  '53100': (error) => clientError('STORAGE_FULL', 'The database has no space left.', error),
}

/** Maps the class of an SQLSTATE (its first two digits) to an error, for those that are not listed above. */
const byClass: ErrorMap = {
  '08': (error) => clientError('DATABASE_UNAVAILABLE', 'The database connection was lost.', error),
  '22': (error) => clientError('INVALID_FIELD', 'A value does not match its type.', error),
  '40': (error) => clientError('DATABASE_BUSY', 'The change conflicted with another one. Retry the request.', error),
  '53': (error) => clientError('DATABASE_BUSY', 'The database has no resources left.', error),
  '54': (error) => clientError('INVALID_FIELD', 'A value is larger than the database allows.', error),
  '55': (error) => clientError('DATABASE_BUSY', 'The records are in use. Retry the request.', error),
  '57': (error) => clientError('DATABASE_UNAVAILABLE', 'The database is restarting.', error),
}

function clientError(code: ErrorCode, message: string, cause: RoundTripError): RuntimeError {
  return new RuntimeError(code, message, { cause })
}

/** Maps a RoundTripError to a RuntimeError, and returns other errors unchanged. */
export function databaseError(error: unknown, moduleErrors: ErrorMap = {}): unknown {
  if (!(error instanceof RoundTripError)) return error
  if (error.cause instanceof MessageTooLongError)
    return clientError('ANSWER_TOO_LARGE', 'The response is too large. Request fewer or smaller records.', error)
  if (error.sqlstate === undefined)
    return clientError('DATABASE_UNAVAILABLE', 'The database connection was lost.', error)
  const make =
    moduleErrors[error.constraint ?? ''] ??
    moduleErrors[error.sqlstate] ??
    general[error.sqlstate] ??
    byClass[error.sqlstate.slice(0, 2)]
  return make === undefined
    ? new RuntimeError('INTERNAL', 'The database rejected the statement.', { cause: error })
    : make(error)
}
