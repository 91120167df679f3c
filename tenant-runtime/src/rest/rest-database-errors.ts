// What Postgres says of a REST statement, in the interface's own words.
import pg from 'pg'
import type { ErrorMap } from '../database/database-error.ts'
import type { TripError } from '../database/trip-error.ts'
import type { ErrorCode, RuntimeError } from '../errors.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Catalog } from './registry/catalog.ts'
import { constraintOf } from './registry/table-parts.ts'
import { restError } from './rest-error.ts'
import { notOne } from './routes/send.ts'
import { refusals } from './sql/change-sql.ts'

/** @param relations what is served: a constraint of a field that a schema describes is told by the field's name */
export function restErrors(context: RlsContext, relations: Catalog['relations']): ErrorMap {
  const broken = ({ table = '', constraint = '' }: TripError) => {
    const columns = [...(relations.get(table)?.columns.values() ?? [])]
    return constraintOf(table, columns.flatMap(({ field }) => field ?? []), constraint)
  }
  const told = (kind: ErrorCode, code: string, unknown: string) => (error: TripError) => {
    const found = broken(error)
    return restError(kind, { code, message: found === undefined ? unknown : `field "${found.field.name}" ${found.rule}`, cause: error })
  }
  return {
    ...fixed,
    '23505': told('DUPLICATE', '23505', 'a record with this key exists already'),
    '23514': told('INVALID_FIELD', '23514', 'a value is outside what its field allows'),
    '23503': (error) => {
      // Both ends of a reference speak of the table that refers.
      const isReferredTo = error.message.startsWith('update or delete') && relations.has(error.table ?? '')
      if (isReferredTo) return restError('CONFLICT', { code: '23503', message: `records of "${error.table ?? ''}" refer to this one`, cause: error })
      return told('CONFLICT', '23503', 'the record refers to one that is not there')(error)
    },
    '42501': (error) =>
      restError(context.role === 'anon' ? 'UNAUTHORIZED' : 'ROW_DENIED', {
        code: '42501', message: 'the row-level security policy of the collection does not allow this', cause: error,
      }),
  }
}

/** An error that always means the same. */
function says(kind: ErrorCode, code: string, message: string): [string, (error: TripError) => RuntimeError] {
  return [code, (error) => restError(kind, { code, message, cause: error })]
}

/** Its own words, which speak of the request alone. */
function inItsWords(kind: ErrorCode, code: string): [string, (error: TripError) => RuntimeError] {
  return [code, (error) => restError(kind, { code, message: error.message, cause: error, ...(error.detail === undefined ? {} : { details: error.detail }), ...hintOf(error) })]
}

const fixed: ErrorMap = {
  '23502': (error) => restError('MISSING_FIELD', { code: '23502', message: `field "${error.column ?? '?'}" is required`, cause: error }),
  ...Object.fromEntries([
    says('CONFLICT', '23P01', 'the record conflicts with another one'),
    says('INVALID_FIELD', '22P02', 'a value does not fit the type of its field'),
    says('INVALID_FIELD', '22007', 'a value is no date and time'),
    says('INVALID_FIELD', '22008', 'a date and time is out of range'),
    says('INVALID_FIELD', '22003', 'a number is out of range'),
    says('INVALID_FIELD', '54000', 'a value is too long for the index of its field'),
    says('INVALID_FIELD', '428C9', 'a field is made by the database alone'),
    says('INVALID_QUERY', '21000', 'one request changes a record twice, or a function gave more rows than one'),
    says('INVALID_QUERY', '42883', 'this operator does not fit the type of the field'),
    says('INVALID_QUERY', '42804', 'this operator does not fit the type of the field'),
    says('INVALID_QUERY', '42846', 'the field can not be cast to this type'),
    says('INVALID_QUERY', '42725', 'the function is ambiguous for these types'),
    says('INVALID_QUERY', '42P18', 'the type of a value can not be told'),
    says('INVALID_QUERY', '42P10', 'on_conflict names no fields that are unique together'),
    says('INVALID_QUERY', '42809', 'this can not be done with what the name stands for'),
    says('INVALID_QUERY', '0A000', 'this is not possible with the collection'),
    says('INVALID_QUERY', '55000', 'this view takes no such change'),
    says('METHOD_NOT_ALLOWED', '25006', 'GET changes nothing: call the function with POST'),
    says('NO_SUCH_COLLECTION', '42P01', 'a table is gone; reload the schemas'),
    says('INVALID_QUERY', '42703', 'a column is gone; reload the schemas'),
    inItsWords('INVALID_QUERY', '42704'),
    inItsWords('INVALID_QUERY', '22P01'),
  ]),
  // Of ours there are none: what is left is a search that is written wrongly.
  '42601': (error) =>
    /tsquery/.test(error.message) ? restError('INVALID_QUERY', { code: '42601', message: 'the text of a search is malformed', cause: error })
    : restError('INTERNAL', { code: '42601', message: 'the database refused the statement', cause: error }),
  TNREF: (error) => {
    const n = Number(error.detail ?? 0)
    if (error.message === refusals.exactly) return notOne(n, error)
    return restError('INVALID_QUERY', { code: 'PGRST124', message: 'Query result exceeds max-affected preference constraint', details: `The query affects ${n} rows`, cause: error })
  },
}

/** What a tenant's own code raises: with its own message, and status when it names one (`PT402`). */
export function raised(error: TripError): RuntimeError | undefined {
  const { sqlstate = '' } = error
  const status = /^PT([45]\d\d)$/.exec(sqlstate)?.[1]
  if (!sqlstate.startsWith('P0') && status === undefined) return undefined
  return restError('RAISED', {
    code: sqlstate, message: error.message, cause: error, ...(error.detail === undefined ? {} : { details: error.detail }), ...hintOf(error),
    ...(status === undefined ? {} : { status: Number(status) }),
  })
}

function hintOf({ cause }: TripError): { hint?: string } {
  return cause instanceof pg.DatabaseError && cause.hint !== undefined ? { hint: cause.hint } : {}
}
