// What Postgres says of a REST statement, in the interface's own words.
import type { ErrorMap } from '../database/database-error.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import { restError } from './rest-error.ts'

export function restErrors(context: RlsContext): ErrorMap {
  return {
    '23502': (error) => restError('MISSING_FIELD', { code: '23502', message: `field "${error.column ?? '?'}" is required`, cause: error }),
    '23505': (error) => restError('DUPLICATE', { code: '23505', message: 'a record with this key exists already', cause: error }),
    '23503': (error) => restError('CONFLICT', { code: '23503', message: 'the record refers to one that is not there', cause: error }),
    '42501': (error) =>
      restError(context.role === 'anon' ? 'UNAUTHORIZED' : 'ROW_DENIED', {
        code: '42501', message: 'the row-level security policy of the collection does not allow this', cause: error,
      }),
    '22P02': (error) => restError('INVALID_FIELD', { code: '22P02', message: 'a value does not fit the type of its field', cause: error }),
    '22007': (error) => restError('INVALID_FIELD', { code: '22007', message: 'a value is no date and time', cause: error }),
    '22008': (error) => restError('INVALID_FIELD', { code: '22008', message: 'a date and time is out of range', cause: error }),
    '22003': (error) => restError('INVALID_FIELD', { code: '22003', message: 'a number is out of range', cause: error }),
    '54000': (error) => restError('INVALID_FIELD', { code: '54000', message: 'a value is too long for the index of its field', cause: error }),
    '42883': (error) => restError('INVALID_QUERY', { code: '42883', message: 'this operator does not fit the type of the field', cause: error }),
    '42804': (error) => restError('INVALID_QUERY', { code: '42804', message: 'this operator does not fit the type of the field', cause: error }),
    '42P01': (error) => restError('NO_SUCH_COLLECTION', { code: 'PGRST205', message: 'the table of the collection is gone; reload the schemas', cause: error }),
    '42703': (error) => restError('INVALID_QUERY', { code: '42703', message: 'a column of the collection is gone; reload the schemas', cause: error }),
  }
}
