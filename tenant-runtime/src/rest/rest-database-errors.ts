// What Postgres says of a REST statement, in the interface's own words.
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
 * What a statement failed with, as it is told: whatever a tenant's own code says of itself in its own words.
 * @param relations what is served: a constraint of a field that a schema describes is told by the field's name
 */
export function restDatabaseError(error: unknown, context: RlsContext, relations: Catalog['relations']): unknown {
  if (!(error instanceof RoundTripError) || error.sqlstate === undefined) return databaseError(error)
  const { sqlstate } = error
  const status = /^PT([45]\d\d)$/.exec(sqlstate)?.[1]
  if (status !== undefined) return inOwnWords(error, Number(status))
  if (sqlstate !== rejectedChange && !postgresClasses.has(sqlstate.slice(0, 2))) return inOwnWords(error, 400)
  const mapped = databaseError(error, restErrors(context, relations))
  if (!(mapped instanceof RuntimeError) || sqlstate === rejectedChange) return mapped
  const isRaised = / at RAISE$/m.test(contextOf(error).split('\n', 1)[0] ?? '')
  if (isRaised) return inOwnWords(error, mapped.status < 500 ? mapped.status : 400)
  const isInside = /^(?:PL\/pgSQL|SQL) function /m.test(contextOf(error))
  if (isInside && sqlstate !== '25006' && mapped.status !== 503 && !/^(?:58|XX)/.test(sqlstate))
    return inOwnWords(error, mapped.status < 500 ? mapped.status : 400)
  if (mapped.status < 500 && mapped.extra['code'] === undefined)
    return restError(mapped.code, { code: sqlstate, message: mapped.message, details: error.message, cause: error })
  return mapped
}

/** Those whose SQLSTATEs mean something to Postgres; others are somebody's own. */
const postgresClasses: ReadonlySet<string> = new Set(
  [
    '00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F',
    '34 38 39 3B 3D 3F 40 42 44 53 54 55 57 58 72 F0 HV P0 XX',
  ].flatMap((classes) => classes.split(' ')),
)
const rejectedChange = 'TNREF'

function inOwnWords(error: RoundTripError, status: number): RuntimeError {
  return restError('RAISED', {
    code: error.sqlstate ?? '',
    message: error.message,
    cause: error,
    status,
    ...(error.detail === undefined ? {} : { details: error.detail }),
    ...hintOf(error),
  })
}

/** Where in the tenant's code it happened, innermost first. */
function contextOf({ cause }: RoundTripError): string {
  return cause instanceof pg.DatabaseError ? (cause.where ?? '') : ''
}

function restErrors(context: RlsContext, relations: Catalog['relations']): ErrorMap {
  const reported = (kind: ErrorCode, code: string, unknown: string) => (error: RoundTripError) => {
    const { table = '', constraint = '' } = error
    const fields = [...(relations.get(table)?.columns.values() ?? [])].flatMap(({ field }) => field ?? [])
    const found = constraintOf(table, fields, constraint)
    // Constraints of a table made with SQL have names of its maker's.
    const otherwise = fields.length === 0 ? error.message : unknown
    return restError(kind, {
      code,
      message: found === undefined ? otherwise : `field "${found.field.name}" ${found.rule}`,
      cause: error,
    })
  }
  return {
    ...fixed,
    '23505': reported('DUPLICATE', '23505', 'a record with this key exists already'),
    '23514': reported('INVALID_FIELD', '23514', 'a value is outside what its field allows'),
    '23503': (error) => {
      // Both ends of a reference speak of the table that refers.
      const isReferredTo = error.message.startsWith('update or delete') && relations.has(error.table ?? '')
      if (isReferredTo)
        return restError('CONFLICT', {
          code: '23503',
          message: `records of "${error.table ?? ''}" refer to this one`,
          cause: error,
        })
      return reported('CONFLICT', '23503', 'the record refers to one that is not there')(error)
    },
    '42501': (error) =>
      restError(context.role === 'anon' ? 'UNAUTHORIZED' : 'ROW_DENIED', {
        code: '42501',
        message: 'the row-level security policy of the collection does not allow this',
        cause: error,
      }),
  }
}

/** An error that always means the same; what Postgres says of it are the details. */
function reports(kind: ErrorCode, code: string, message: string): [string, (error: RoundTripError) => RuntimeError] {
  return [code, (error) => restError(kind, { code, message, details: error.message, cause: error })]
}

/** Its own words, which speak of the request alone. */
function inItsWords(kind: ErrorCode, code: string): [string, (error: RoundTripError) => RuntimeError] {
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
    restError('MISSING_FIELD', { code: '23502', message: `field "${error.column ?? '?'}" is required`, cause: error }),
  ...Object.fromEntries([
    reports('CONFLICT', '23P01', 'the record conflicts with another one'),
    reports('INVALID_FIELD', '22P02', 'a value does not fit the type of its field'),
    reports('INVALID_FIELD', '22007', 'a value is no date and time'),
    reports('INVALID_FIELD', '22008', 'a date and time is out of range'),
    reports('INVALID_FIELD', '22003', 'a number is out of range'),
    reports('INVALID_FIELD', '54000', 'a value is too long for the index of its field'),
    reports('INVALID_FIELD', '428C9', 'a field is made by the database alone'),
    reports('INVALID_QUERY', '21000', 'one request changes a record twice, or a function gave more rows than one'),
    reports('INVALID_QUERY', '42883', 'this operator does not fit the type of the field'),
    reports('INVALID_QUERY', '42804', 'this operator does not fit the type of the field'),
    reports('INVALID_QUERY', '42846', 'the field can not be cast to this type'),
    reports('INVALID_QUERY', '42725', 'the function is ambiguous for these types'),
    reports('INVALID_QUERY', '42P18', 'the type of a value can not be told'),
    reports('INVALID_QUERY', '42P10', 'on_conflict names no fields that are unique together'),
    reports('INVALID_QUERY', '42809', 'this can not be done with what the name stands for'),
    reports('INVALID_FIELD', '44000', 'the record lies outside of what the view shows'),
    reports('INVALID_QUERY', '42803', 'what is selected and what is aggregated do not go together'),
    reports('INVALID_QUERY', '42P17', 'a policy of the collection asks for itself without an end'),
    reports('INVALID_QUERY', '0A000', 'this is not possible with the collection'),
    reports('INVALID_QUERY', '55000', 'this view takes no such change'),
    reports('METHOD_NOT_ALLOWED', '25006', 'GET changes nothing: call the function with POST'),
    reports('NO_SUCH_COLLECTION', '42P01', 'a table is gone; reload the schemas'),
    reports('INVALID_QUERY', '42703', 'a column is gone; reload the schemas'),
    inItsWords('INVALID_QUERY', '42704'),
    inItsWords('INVALID_QUERY', '3F000'),
    inItsWords('INVALID_QUERY', '42602'),
    inItsWords('INVALID_FIELD', '2201B'),
    inItsWords('INVALID_FIELD', '22025'),
    inItsWords('INVALID_QUERY', '22P01'),
  ]),
  // Of ours there are none: what is left is a search that is written wrongly.
  '42601': (error) =>
    /tsquery|improper|escaped character/.test(error.message)
      ? restError('INVALID_QUERY', {
          code: '42601',
          message: 'the text or the language of a search is malformed',
          details: error.message,
          cause: error,
        })
      : restError('INTERNAL', { code: '42601', message: 'the database refused the statement', cause: error }),
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
