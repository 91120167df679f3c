// Maps Postgres' errors of a REST statement to the interface's errors.
import pg from 'pg'
import { databaseError, type ErrorMap } from '../database/database-error.ts'
import { RoundTripError } from '../database/round-trip-error.ts'
import { RuntimeError, type ErrorCode } from '../errors.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Catalog } from './registry/catalog.ts'
import { constraintOf } from './registry/table-parts.ts'
import { restError } from './rest-error.ts'
import { notOne } from './routes/send.ts'
import { rejections } from './sql/change-sql.ts'

/**
 * Maps the error of a statement. Errors raised by a tenant's own code keep their message.
 * @param relations the served relations: a violated constraint is reported with the field of its schema
 */
export function restDatabaseError(error: unknown, context: RlsContext, relations: Catalog['relations']): unknown {
  if (!(error instanceof RoundTripError) || error.sqlstate === undefined) return databaseError(error)
  const { sqlstate } = error
  const status = /^PT([45]\d\d)$/.exec(sqlstate)?.[1]
  if (status !== undefined) return raisedError(error, Number(status))
  if (sqlstate !== rejectedChange && !postgresClasses.has(sqlstate.slice(0, 2))) return raisedError(error, 400)
  const mapped = databaseError(error, restErrors(context, relations))
  if (!(mapped instanceof RuntimeError) || sqlstate === rejectedChange) return mapped
  const isRaised = / at RAISE$/m.test(contextOf(error).split('\n', 1)[0] ?? '')
  if (isRaised) return raisedError(error, mapped.status < 500 ? mapped.status : 400)
  const isInside = /^(?:PL\/pgSQL|SQL) function /m.test(contextOf(error))
  if (isInside && sqlstate !== '25006' && mapped.status !== 503 && !/^(?:58|XX)/.test(sqlstate))
    return raisedError(error, mapped.status < 500 ? mapped.status : 400)
  if (mapped.status < 500 && mapped.extra['code'] === undefined)
    return restError(mapped.code, { code: sqlstate, message: mapped.message, details: error.message, cause: error })
  return mapped
}

/** The classes of SQLSTATEs that Postgres defines. Others are a tenant's own. */
const postgresClasses: ReadonlySet<string> = new Set(
  [
    '00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F',
    '34 38 39 3B 3D 3F 40 42 44 53 54 55 57 58 72 F0 HV P0 XX',
  ].flatMap((classes) => classes.split(' ')),
)
const rejectedChange = 'TNREF'

function raisedError(error: RoundTripError, status: number): RuntimeError {
  return restError('RAISED', {
    code: error.sqlstate ?? '',
    message: error.message,
    cause: error,
    status,
    ...(error.detail === undefined ? {} : { details: error.detail }),
    ...hintOf(error),
  })
}

/** Returns the stack of the tenant's code in which the error occurred, innermost first. */
function contextOf({ cause }: RoundTripError): string {
  return cause instanceof pg.DatabaseError ? (cause.where ?? '') : ''
}

function restErrors(context: RlsContext, relations: Catalog['relations']): ErrorMap {
  const constraintError = (kind: ErrorCode, code: string, unknown: string) => (error: RoundTripError) => {
    const { table = '', constraint = '' } = error
    const fields = [...(relations.get(table)?.columns.values() ?? [])].flatMap(({ field }) => field ?? [])
    const found = constraintOf(table, fields, constraint)
    // A table that was created with SQL has constraints with arbitrary names.
    const otherwise = fields.length === 0 ? error.message : unknown
    return restError(kind, {
      code,
      message: found === undefined ? otherwise : `Field "${found.field.name}" ${found.rule}.`,
      cause: error,
    })
  }
  return {
    ...fixed,
    '23505': constraintError('DUPLICATE', '23505', 'A record with this key already exists.'),
    '23514': constraintError('INVALID_FIELD', '23514', 'A value is outside the range that its field allows.'),
    '23503': (error) => {
      // Both ends of a reference report the referencing table.
      const isReferenced = error.message.startsWith('update or delete') && relations.has(error.table ?? '')
      if (isReferenced)
        return restError('CONFLICT', {
          code: '23503',
          message: `Records of "${error.table ?? ''}" reference this one.`,
          cause: error,
        })
      return constraintError('CONFLICT', '23503', 'The record references one that does not exist.')(error)
    },
    '42501': (error) =>
      restError(context.role === 'anon' ? 'UNAUTHORIZED' : 'ROW_DENIED', {
        code: '42501',
        message: 'The row-level security policy of the collection does not allow this.',
        cause: error,
      }),
  }
}

/** Maps a SQLSTATE to a fixed message. Postgres' message becomes the details. */
function reports(kind: ErrorCode, code: string, message: string): [string, (error: RoundTripError) => RuntimeError] {
  return [code, (error) => restError(kind, { code, message, details: error.message, cause: error })]
}

/** Maps a SQLSTATE to Postgres' own message, which only refers to the request. */
function keepsMessage(kind: ErrorCode, code: string): [string, (error: RoundTripError) => RuntimeError] {
  return [
    code,
    (error) =>
      restError(kind, {
        code,
        message: error.message,
        cause: error,
        ...(error.detail === undefined ? {} : { details: error.detail }),
        ...hintOf(error),
      }),
  ]
}

const fixed: ErrorMap = {
  '23502': (error) =>
    restError('MISSING_FIELD', {
      code: '23502',
      message: `Field "${error.column ?? '?'}" is required.`,
      cause: error,
    }),
  ...Object.fromEntries([
    reports('CONFLICT', '23P01', 'The record conflicts with another one.'),
    reports('INVALID_FIELD', '22P02', 'A value does not match the type of its field.'),
    reports('INVALID_FIELD', '22007', 'A value is not a valid date and time.'),
    reports('INVALID_FIELD', '22008', 'A date and time is out of range.'),
    reports('INVALID_FIELD', '22003', 'A number is out of range.'),
    reports('INVALID_FIELD', '54000', 'A value is too long for the index of its field.'),
    reports('INVALID_FIELD', '428C9', 'The database generates a field, so it cannot be written.'),
    reports('INVALID_QUERY', '21000', 'The request changes a record twice, or a function returned more than one row.'),
    reports('INVALID_QUERY', '42883', 'The operator does not support the type of the field.'),
    reports('INVALID_QUERY', '42804', 'The operator does not support the type of the field.'),
    reports('INVALID_QUERY', '42846', 'The field cannot be cast to this type.'),
    reports('INVALID_QUERY', '42725', 'The function is ambiguous for these types.'),
    reports('INVALID_QUERY', '42P18', 'The type of a value cannot be determined.'),
    reports('INVALID_QUERY', '42P10', 'Query parameter "on_conflict" must name fields that are unique together.'),
    reports('INVALID_QUERY', '42809', 'The named object does not support this operation.'),
    reports('INVALID_FIELD', '44000', 'The record is outside of the view.'),
    reports('INVALID_QUERY', '42803', 'The selected fields cannot be combined with the aggregates.'),
    reports('INVALID_QUERY', '42P17', 'A policy of the collection refers to itself recursively.'),
    reports('INVALID_QUERY', '0A000', 'The collection does not support this operation.'),
    reports('INVALID_QUERY', '55000', 'The view does not support this change.'),
    reports('METHOD_NOT_ALLOWED', '25006', 'GET must not change data. Call the function with POST.'),
    reports('NO_SUCH_COLLECTION', '42P01', 'A table no longer exists. Reload the schemas.'),
    reports('INVALID_QUERY', '42703', 'A column no longer exists. Reload the schemas.'),
    keepsMessage('INVALID_QUERY', '42704'),
    keepsMessage('INVALID_QUERY', '3F000'),
    keepsMessage('INVALID_QUERY', '42602'),
    keepsMessage('INVALID_FIELD', '2201B'),
    keepsMessage('INVALID_FIELD', '22025'),
    keepsMessage('INVALID_QUERY', '22P01'),
  ]),
  // The service's own statements have valid syntax, so the cause is a malformed search.
  '42601': (error) =>
    /tsquery|improper|escaped character/.test(error.message)
      ? restError('INVALID_QUERY', {
          code: '42601',
          message: 'The text or the language of a search is malformed.',
          details: error.message,
          cause: error,
        })
      : restError('INTERNAL', { code: '42601', message: 'The database rejected the statement.', cause: error }),
  TNREF: (error) => {
    const n = Number(error.detail ?? 0)
    if (error.message === rejections.exactly) return notOne(n, error)
    return restError('INVALID_QUERY', {
      code: 'PGRST124',
      message: 'Query result exceeds max-affected preference constraint',
      details: `The query affects ${n} rows`,
      cause: error,
    })
  },
}

function hintOf({ cause }: RoundTripError): { hint?: string } {
  return cause instanceof pg.DatabaseError && cause.hint !== undefined ? { hint: cause.hint } : {}
}
