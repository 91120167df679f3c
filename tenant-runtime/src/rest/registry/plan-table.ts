// Plans tables that a reload creates, hides and drops. Pure.
import { identifier } from '../sql/names.ts'
import { tableFields, type Field, type SchemaDefinition } from './collection.ts'
import { defaultSql } from './ddl-values.ts'
import type { ExistingTable } from './existing-tables.ts'
import { foundationSql, policySql, tenantColumn } from './policy-sql.ts'
import { eventFunctionName, eventsSql, eventTriggers } from './record-events.ts'
import { alterSql, dropConstraintSql, type Draft } from './reload-draft.ts'
import { columnType, constraintsOf, indexesOf, primaryKeySql } from './table-parts.ts'

export function createTable(draft: Draft, tenantId: string, definition: SchemaDefinition): void {
  const { name } = definition
  const constraints = constraintsOf(definition).filter(({ kind }) => kind !== 'reference')
  const parts = [
    ...tableFields(definition).map((field) => columnSql(field, definition)),
    tenantColumn(tenantId),
    primaryKeySql(definition),
    ...constraints.map((constraint) => `constraint ${identifier(constraint.name)} ${constraint.sql}`),
  ]
  draft.phases.create.push({ sql: `create table ${identifier(name)} (${parts.join(', ')})` })
  draft.phases.index.push(...indexesOf(definition).map(({ sql }) => ({ sql })))
  draft.phases.guard.push(...[...foundationSql(name), ...policySql(definition)].map((sql) => ({ sql })))
  if (definition.events === true) addEvents(draft, definition)
  draft.actions.push(`collection "${name}" was created`)
}

/** Hides the table of a deleted schema: the table and its records stay, and its references to other tables are dropped. */
export function hideTable(draft: Draft, definition: SchemaDefinition, table: ExistingTable | undefined): void {
  const { name } = definition
  draft.actions.push(`collection "${name}" is no longer published; its table is retained`)
  if (table === undefined) return
  const references = constraintsOf(definition).filter(
    (constraint) => constraint.kind === 'reference' && table.constraints.has(constraint.name),
  )
  if (references.length > 0)
    draft.phases.unlink.push({
      sql: alterSql(
        name,
        references.map((reference) => dropConstraintSql(reference.name)),
      ),
    })
  if (definition.events === true) dropEvents(draft, definition)
}

export function dropTable(draft: Draft, definition: SchemaDefinition): void {
  draft.phases.drop.push({ sql: `drop table if exists ${identifier(definition.name)} cascade` })
  draft.phases.drop.push({ sql: `drop function if exists ${identifier(eventFunctionName(definition))}()` })
  draft.actions.push(`the table of "${definition.name}" was dropped`)
}

export function addEvents(draft: Draft, definition: SchemaDefinition): void {
  const events = eventsSql(definition)
  draft.phases.guard.push({ sql: events.function }, ...events.triggers.map((sql) => ({ sql })))
}

export function dropEvents(draft: Draft, definition: SchemaDefinition): void {
  const table = identifier(definition.name)
  draft.phases.detach.push(
    ...eventTriggers.map((trigger) => ({ sql: `drop trigger if exists ${trigger} on ${table}` })),
    { sql: `drop function if exists ${identifier(eventFunctionName(definition))}()` },
  )
}

export function columnSql(field: Field, definition: SchemaDefinition): string {
  const initial = defaultSql(field, definition)
  return `${columnType(field)}${initial === undefined ? '' : ` default ${initial}`}${field.required && !field.primary ? ' not null' : ''}`
}
