// Translates Postgres' errors of a reload's step to the schema's terms.
import pg from 'pg'
import { RuntimeError } from '../../errors.ts'
import type { SchemaDefinition } from './collection.ts'
import type { Step } from './reload-draft.ts'
import { constraintsOf, primaryKeyName } from './table-parts.ts'

/**
 * Returns the error for the client, or the thrown one.
 * @param wanted the schemas that the reload applies
 */
export function reloadError(cause: unknown, step: Step, wanted: readonly SchemaDefinition[]): unknown {
  if (!(cause instanceof pg.DatabaseError)) return cause
  const notMet = (what: string) =>
    new RuntimeError('SCHEMA_NOT_MET', `Not every record matches the schema: ${what}.`, { cause })
  const definition = wanted.find(({ name }) => name === cause.table)
  switch (cause.code) {
    case '55P03':
    case '40P01':
      return new RuntimeError('DATABASE_BUSY', 'A table is in use. Retry the reload.', { cause })
    case '57014':
      return new RuntimeError('STATEMENT_TIMEOUT', 'The reload took too long. Nothing was changed.', { cause })
    case '42P07':
      return new RuntimeError(
        'CONFLICT',
        'The home already has a table with this name that was not created by a schema.',
        { cause },
      )
    case '2BP01':
    case '0A000':
      return new RuntimeError(
        'CONFLICT',
        'An object that was created with SQL depends on what the reload would change.',
        {
          cause,
        },
      )
    case '23502':
      return notMet(
        `the field "${cause.table ?? '?'}.${cause.column ?? '?'}" is required, but some records do not have it`,
      )
    case '23505':
    case '23514':
    case '23503': {
      const constraint =
        definition === undefined ? undefined : constraintsOf(definition).find(({ name }) => name === cause.constraint)
      if (definition !== undefined && constraint !== undefined)
        return notMet(`the field "${definition.name}.${constraint.field.name}" ${constraint.rule}`)
      if (definition !== undefined && cause.constraint === primaryKeyName(definition))
        return notMet(`the primary field of "${definition.name}" has duplicate values`)
      return notMet(`a record of "${cause.table ?? '?'}" violates "${cause.constraint ?? '?'}"`)
    }
    case '54000':
      // The control plane limits the number of a home's relations and other objects with an event trigger.
      if (cause.constraint === 'objects_of_home') return new RuntimeError('CONFLICT', cause.message, { cause })
      return notMet('a value is too long for an index')
  }
  if (step.field !== undefined && cause.code?.startsWith('22') === true)
    return notMet(`the field "${step.field}" has a value that cannot be converted`)
  return cause
}
