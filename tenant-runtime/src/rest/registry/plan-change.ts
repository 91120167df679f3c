// Plans a reload's changes of the existing table of a collection. Pure.
import { isDeepStrictEqual } from 'node:util'
import { identifier } from '../sql/names.ts'
import { primaryOf, sqlTypes, tableFields, type Field, type SchemaDefinition } from './collection.ts'
import { castSql, defaultSql } from './ddl-values.ts'
import type { ExistingTable } from './existing-tables.ts'
import { addEvents, columnSql, dropEvents } from './plan-table.ts'
import { dropPoliciesSql, policySql, rowSecuritySql } from './policy-sql.ts'
import { eventsSql, eventTriggers } from './record-events.ts'
import { addConstraintSql, alterSql, dropConstraintSql, type Applied, type Draft } from './reload-draft.ts'
import { constraintsOf, earlierOwnerIndex, indexesOf, primaryKeySql } from './table-parts.ts'

/** A field before and after; undefined when it does not exist. */
interface FieldChange {
  name: string
  before: Field | undefined
  now: Field | undefined
}

export function changeTable(
  draft: Draft,
  definition: SchemaDefinition,
  { definition: old, published }: Applied,
  table: ExistingTable,
): void {
  const { name } = definition
  if (!published) draft.actions.push(`collection "${name}" is published again`)
  if (!table.hasRowSecurity) {
    draft.phases.guard.push({ sql: rowSecuritySql(name) })
    draft.actions.push(`row-level security of "${name}" was restored`)
  }
  const changes = fieldChanges(old, definition)
  recordChanges(draft, name, changes)
  const isRekeyed = primaryOf(old).name !== primaryOf(definition).name
  const constraints = changedConstraints(draft, definition, old, table)
  const rekeyed = isRekeyed && table.primaryKey !== undefined ? [table.primaryKey] : []
  const dropped = [...constraints.dropped, ...rekeyed].map(dropConstraintSql)
  if (dropped.length > 0) draft.phases.detach.push({ sql: alterSql(name, dropped) })
  for (const { before, now } of changes) {
    if (before === undefined || now === undefined || before.type === now.type) continue
    const column = identifier(now.name)
    const cast =
      `alter column ${column} drop default,` +
      ` alter column ${column} type ${sqlTypes[now.type]} using ${castSql(now.name, before.type, now.type)}`
    draft.phases.convert.push({ sql: alterSql(name, [cast]), field: `${name}.${now.name}` })
  }
  const alterations = [
    ...changes.flatMap((change) => columnChanges(change, old, definition)),
    ...(isRekeyed ? [`add ${primaryKeySql(definition)}`] : []),
    ...constraints.added.map(addConstraintSql),
  ]
  if (alterations.length > 0) draft.phases.alter.push({ sql: alterSql(name, alterations) })
  changeIndexes(draft, definition, old, table)
  changePolicies(draft, definition, old, changes)
  changeEvents(draft, definition, old, table)
}

function fieldChanges(old: SchemaDefinition, definition: SchemaDefinition): FieldChange[] {
  const before = new Map(tableFields(old).map((field) => [field.name, field]))
  const now = new Map(tableFields(definition).map((field) => [field.name, field]))
  return [...new Set([...now.keys(), ...before.keys()])].map((name) => ({
    name,
    before: before.get(name),
    now: now.get(name),
  }))
}

/** The names of attributes in schemas. */
const attributes = {
  unique: 'unique',
  index: 'index',
  maxLength: 'max_length',
  minimum: 'minimum',
  maximum: 'maximum',
  default: 'default',
  enum: 'enum',
  references: 'references',
} as const satisfies Partial<Record<keyof Field, string>>

function recordChanges({ actions, destructive }: Draft, collection: string, changes: readonly FieldChange[]): void {
  const report = (line: string) => {
    destructive.push(line)
    actions.push(line)
  }
  for (const { name, before, now } of changes) {
    const field = `field "${collection}.${name}"`
    if (before === undefined || now === undefined) {
      if (before === undefined) actions.push(`${field} was added`)
      else report(`${field} is removed`)
      continue
    }
    if (before.type !== now.type) report(`${field} changes its type from ${before.type} to ${now.type}`)
    if (before.primary !== now.primary) report(`${field} ${now.primary ? 'becomes' : 'is no longer'} primary`)
    if (before.required !== now.required) actions.push(`${field} is ${now.required ? 'now' : 'no longer'} required`)
    const others = Object.entries(attributes).filter(
      ([key]) => !isDeepStrictEqual(memberOf(before, key), memberOf(now, key)),
    )
    if (others.length > 0) actions.push(`${field} has changed: ${others.map(([, attribute]) => attribute).join(', ')}`)
  }
}

function memberOf(field: Field, key: string): unknown {
  return Object.entries(field).find(([member]) => member === key)?.[1]
}

/**
 * Plans the change of a column. The primary key's column is `not null` by itself, and stays so when it is no longer the
 * key.
 */
function columnChanges({ before, now }: FieldChange, old: SchemaDefinition, definition: SchemaDefinition): string[] {
  if (now === undefined) return before === undefined ? [] : [`drop column ${identifier(before.name)}`]
  if (before === undefined) return [`add column ${columnSql(now, definition)}`]
  const column = `alter column ${identifier(now.name)}`
  const wasNotNull = before.required || before.primary
  const isNotNull = now.required || now.primary
  const initial = defaultSql(now, definition)
  const isSameDefault = before.type === now.type && initial === defaultSql(before, old)
  return [
    ...(wasNotNull === isNotNull ? [] : [`${column} ${isNotNull ? 'set' : 'drop'} not null`]),
    ...(isSameDefault ? [] : [`${column} ${initial === undefined ? 'drop default' : `set default ${initial}`}`]),
  ]
}

/** Plans checks and unique fields. References are added when all tables exist. */
function changedConstraints(draft: Draft, definition: SchemaDefinition, old: SchemaDefinition, table: ExistingTable) {
  const wanted = constraintsOf(definition).filter(({ kind }) => kind !== 'reference')
  const earlier = constraintsOf(old).filter(({ kind }) => kind !== 'reference')
  const unchanged = new Set(
    wanted.filter(
      ({ name, sql }) => table.constraints.has(name) && earlier.some((one) => one.name === name && one.sql === sql),
    ),
  )
  const unchangedNames = new Set([...unchanged].map(({ name }) => name))
  const added = wanted.filter((constraint) => !unchanged.has(constraint))
  const missing = added.filter(({ name, sql }) => earlier.some((one) => one.name === name && one.sql === sql))
  for (const field of new Set(missing.map((constraint) => constraint.field.name)))
    draft.actions.push(`the rules of field "${definition.name}.${field}" were restored`)
  const known = new Set([...earlier, ...wanted].map(({ name }) => name))
  return { added, dropped: [...known].filter((name) => table.constraints.has(name) && !unchangedNames.has(name)) }
}

function changeIndexes(draft: Draft, definition: SchemaDefinition, old: SchemaDefinition, table: ExistingTable): void {
  const wanted = indexesOf(definition)
  const earlier = new Map(indexesOf(old).map(({ name, sql }) => [name, sql]))
  const stays = new Set(
    wanted.filter(({ name, sql }) => table.indexes.has(name) && earlier.get(name) === sql).map(({ name }) => name),
  )
  const known = new Set([...earlier.keys(), ...wanted.map(({ name }) => name), earlierOwnerIndex(definition.name)])
  const gone = [...known].filter((name) => table.indexes.has(name) && !stays.has(name))
  draft.phases.detach.push(...gone.map((name) => ({ sql: `drop index ${identifier(name)}` })))
  draft.phases.index.push(...wanted.filter(({ name }) => !stays.has(name)).map(({ sql }) => ({ sql })))
}

function changePolicies(
  draft: Draft,
  definition: SchemaDefinition,
  old: SchemaDefinition,
  changes: readonly FieldChange[],
): void {
  const isOther = definition.policy.type !== old.policy.type || definition.policy.ownerField !== old.policy.ownerField
  // A policy depends on the column that it names.
  const isRetyped = changes.some(
    ({ name, before, now }) => name === old.policy.ownerField && before?.type !== now?.type,
  )
  if (!isOther && !isRetyped) return
  draft.phases.detach.push(...dropPoliciesSql(definition.name).map((sql) => ({ sql })))
  draft.phases.guard.push(...policySql(definition).map((sql) => ({ sql })))
  if (isOther) draft.actions.push(`collection "${definition.name}" now has the policy ${definition.policy.type}`)
}

function changeEvents(draft: Draft, definition: SchemaDefinition, old: SchemaDefinition, table: ExistingTable): void {
  const isThere = eventTriggers.every((trigger) => table.triggers.has(trigger))
  const wanted = definition.events === true
  if (wanted && isThere && isDeepStrictEqual(eventsSql(definition), eventsSql(old))) return
  if (!wanted && old.events !== true) return
  dropEvents(draft, old)
  if (wanted) addEvents(draft, definition)
  if (wanted !== (old.events === true))
    draft.actions.push(`changes of "${definition.name}" are ${wanted ? 'now' : 'no longer'} published as events`)
}
