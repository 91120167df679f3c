// What Postgres said, as an error of ours: the one place that maps SQLSTATEs and constraint names.
import { RuntimeError, type ErrorCode } from '../errors.ts'
import { MessageTooLong } from './message-guard.ts'
import { RoundTripError } from './round-trip-error.ts'

/** Constraint or SQLSTATE → the error to show. Areas add theirs on top of the general ones. */
export type ErrorMap = Record<string, (error: RoundTripError) => RuntimeError>

const general: ErrorMap = {
  '23502': (error) => shown('MISSING_FIELD', `${error.column ?? 'a required field'} is required`, error),
  '23503': (error) => shown('CONFLICT', 'the record refers to one that is not there, or is referred to', error),
  '23505': (error) => shown('DUPLICATE', 'a record with this key exists already', error),
  '23514': (error) => shown('INVALID_FIELD', 'a value is outside what its field allows', error),
  '42501': (error) => shown('ROW_DENIED', 'the row-level security policy does not allow this', error),
  '57014': (error) => shown('STATEMENT_TIMEOUT', 'the database took too long', error),
  '53100': (error) => shown('STORAGE_FULL', 'the database has no room left', error),
}

/** Class of SQLSTATE (first two digits) → error, for what is not listed one by one. */
const byClass: ErrorMap = {
  '08': (error) => shown('DATABASE_UNAVAILABLE', 'the database connection was lost', error),
  '22': (error) => shown('INVALID_FIELD', 'a value does not fit its type', error),
  '40': (error) => shown('DATABASE_BUSY', 'the change conflicted with another one; try again', error),
  '53': (error) => shown('DATABASE_BUSY', 'the database has no resources left', error),
  '54': (error) => shown('INVALID_FIELD', 'a value is larger than the database can take', error),
  '55': (error) => shown('DATABASE_BUSY', 'the records are in use; try again', error),
  '57': (error) => shown('DATABASE_UNAVAILABLE', 'the database is restarting', error),
}

function shown(code: ErrorCode, message: string, cause: RoundTripError): RuntimeError {
  return new RuntimeError(code, message, { cause })
}

/** Turns anything thrown by the database into a RuntimeError; other errors pass as they are. */
export function databaseError(error: unknown, module: ErrorMap = {}): unknown {
  if (!(error instanceof RoundTripError)) return error
  if (error.cause instanceof MessageTooLong)
    return shown('ANSWER_TOO_LARGE', 'the answer is too large; ask for fewer or smaller records', error)
  if (error.sqlstate === undefined) return shown('DATABASE_UNAVAILABLE', 'the database connection was lost', error)
  const make =
    module[error.constraint ?? ''] ??
    module[error.sqlstate] ??
    general[error.sqlstate] ??
    byClass[error.sqlstate.slice(0, 2)]
  return make === undefined
    ? new RuntimeError('INTERNAL', 'the database refused the statement', { cause: error })
    : make(error)
}
