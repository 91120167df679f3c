// Maps Postgres' errors of a REST statement to the interface's errors.
import pg from 'pg'
import { databaseError, type ErrorMap } from '../database/database-error.ts'
import { RoundTripError } from '../database/round-trip-error.ts'
import { RuntimeError, type ErrorCode } from '../errors.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Catalog } from './registry/catalog.ts'
import { constraintOf } from './registry/table-parts.ts'
import { restError } from './rest-error.ts'
import { raisedResponse } from './request/raised-response.ts'
import { notOne } from './routes/send.ts'
import { rejections } from './sql/change-sql.ts'

/**
 * Maps the error of a statement. Errors raised by a tenant's own code keep their message.
 * @param relations the served relations: a violated constraint is reported with the field of its schema
 * @param basePath the path of the tenant, to which cookies are limited
 */
export function restDatabaseError(
  error: unknown,
  context: RlsContext,
  relations: Catalog['relations'],
  basePath: string,
): unknown {
  if (!(error instanceof RoundTripError) || error.sqlstate === undefined) return databaseError(error)
  const { sqlstate } = error
  if (sqlstate === 'PGRST') return raisedResponse(error.message, error.detail, basePath, error)
  if (sqlstate === '22023' && error.message.startsWith('invalid value for parameter "TimeZone"'))
    return restError('INVALID_QUERY', {
      code: 'PGRST122',
      message: 'Invalid preferences: the database does not know the time zone.',
      cause: error,
    })
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
  if (mapped.status < 500 && mapped.extra['code'] === undefined) return postgresError(mapped.code, error)
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

function restErrors(context: RlsContext, served: Catalog['relations']): ErrorMap {
  const relations = new Map([...served.values()].map((relation) => [relation.table, relation]))
  /** Returns the fields of a collection that a schema describes. */
  const fieldsOf = (table: string) =>
    [...(relations.get(table)?.columns.values() ?? [])].flatMap(({ field }) => field ?? [])
  const constraintError = (kind: ErrorCode, code: string, unknown: string) => (error: RoundTripError) => {
    const { table = '', constraint = '' } = error
    const fields = fieldsOf(table)
    const found = constraintOf(table, fields, constraint)
    // A table that was created with SQL has constraints with arbitrary names.
    if (fields.length === 0) return postgresError(kind, error)
    return restError(kind, {
      code,
      message: found === undefined ? unknown : `Field "${found.field.name}" ${found.rule}.`,
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
      if (isReferenced && fieldsOf(error.table ?? '').length > 0)
        return restError('CONFLICT', {
          code: '23503',
          message: `Records of "${error.table ?? ''}" reference this one.`,
          cause: error,
        })
      return constraintError('CONFLICT', '23503', 'The record references one that does not exist.')(error)
    },
    '23502': (error) =>
      fieldsOf(error.table ?? '').length === 0
        ? postgresError('MISSING_FIELD', error)
        : restError('MISSING_FIELD', {
            code: '23502',
            message: `Field "${error.column ?? '?'}" is required.`,
            cause: error,
          }),
    '42501': (error) => {
      const kind = context.role === 'anon' ? 'UNAUTHORIZED' : 'ROW_DENIED'
      const [, table = ''] = /"([^"]*)"$/.exec(error.message) ?? []
      if (relations.has(table) && fieldsOf(table).length === 0) return postgresError(kind, error)
      return restError(kind, {
        code: '42501',
        message: 'The row-level security policy of the collection does not allow this.',
        cause: error,
      })
    },
  }
}

/** Makes an error with Postgres' own message, which only refers to the request and the tenant's own objects. */
function postgresError(kind: ErrorCode, error: RoundTripError): RuntimeError {
  return restError(kind, {
    code: error.sqlstate ?? '',
    message: error.message,
    cause: error,
    ...(error.detail === undefined ? {} : { details: error.detail }),
    ...hintOf(error),
  })
}

/** The SQLSTATEs of errors that a request causes. Their message is Postgres' own. */
const ofRequests: readonly (readonly [ErrorCode, codes: string])[] = [
  ['CONFLICT', '23P01'],
  ['INVALID_FIELD', '22P02 22007 22008 22003 22023 2201B 22025 428C9 44000 54000'],
  ['INVALID_QUERY', '21000 42804 42846 42725 42P18 42P10 42809 42803 42P17 42704 42602 0A000 55000 3F000 22P01'],
  ['METHOD_NOT_ALLOWED', '25006'],
  ['NO_SUCH_COLLECTION', '42883'],
]

const fixed: ErrorMap = {
  ...Object.fromEntries(
    ofRequests.flatMap(([kind, codes]) =>
      codes.split(' ').map((code) => [code, (error: RoundTripError) => postgresError(kind, error)]),
    ),
  ),
  '42P01': (error) => staleError('NO_SUCH_COLLECTION', 'A table no longer exists. Reload the schemas.', error),
  '42703': (error) => staleError('INVALID_QUERY', 'A column no longer exists. Reload the schemas.', error),
  // The service's own statements have valid syntax, so the cause is a malformed search.
  '42601': (error) =>
    /tsquery|improper|escaped character/.test(error.message)
      ? postgresError('INVALID_QUERY', error)
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

/** Makes the error of an object that SQL has dropped since the last reload. */
function staleError(kind: ErrorCode, message: string, error: RoundTripError): RuntimeError {
  return restError(kind, { code: error.sqlstate ?? '', message, details: error.message, cause: error })
}

function hintOf({ cause }: RoundTripError): { hint?: string } {
  return cause instanceof pg.DatabaseError && cause.hint !== undefined ? { hint: cause.hint } : {}
}
