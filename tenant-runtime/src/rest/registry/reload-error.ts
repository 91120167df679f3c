// What Postgres says of a step of a reload, in the schema's words.
import pg from 'pg'
import { RuntimeError } from '../../errors.ts'
import type { SchemaDefinition } from './collection.ts'
import type { Step } from './reload-draft.ts'
import { constraintsOf, primaryKeyName } from './table-parts.ts'

/** An error to show, or what was thrown. @param wanted the schemas that the reload was to apply */
export function reloadError(cause: unknown, step: Step, wanted: readonly SchemaDefinition[]): unknown {
  if (!(cause instanceof pg.DatabaseError)) return cause
  const unfit = (what: string) =>
    new RuntimeError('SCHEMA_NOT_MET', `not every record fits the schema: ${what}`, { cause })
  const definition = wanted.find(({ name }) => name === cause.table)
  switch (cause.code) {
    case '55P03':
    case '40P01':
      return new RuntimeError('DATABASE_BUSY', 'a table is in use; try the reload again', { cause })
    case '57014':
      return new RuntimeError('STATEMENT_TIMEOUT', 'the reload took too long; nothing was changed', { cause })
    case '42P07':
      return new RuntimeError('CONFLICT', 'the home has a table of that name already, which no schema made', { cause })
    case '2BP01':
    case '0A000':
      return new RuntimeError('CONFLICT', 'something that was made with SQL depends on what the reload would change', {
        cause,
      })
    case '23502':
      return unfit(`field "${cause.table ?? '?'}.${cause.column ?? '?'}" is required, and there are records without it`)
    case '23505':
    case '23514':
    case '23503': {
      const constraint =
        definition === undefined ? undefined : constraintsOf(definition).find(({ name }) => name === cause.constraint)
      if (definition !== undefined && constraint !== undefined)
        return unfit(`field "${definition.name}.${constraint.field.name}" ${constraint.rule}`)
      if (definition !== undefined && cause.constraint === primaryKeyName(definition))
        return unfit(`the primary field of "${definition.name}" has a value twice`)
      return unfit(`a record of "${cause.table ?? '?'}" breaks "${cause.constraint ?? '?'}"`)
    }
    case '54000':
      return unfit('a value is too long for an index')
  }
  if (step.field !== undefined && cause.code?.startsWith('22') === true)
    return unfit(`field "${step.field}" has a value that can't be converted`)
  return cause
}
