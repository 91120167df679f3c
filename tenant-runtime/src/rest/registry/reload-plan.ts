// Plans a reload: the difference between the rows of `schemas`, the applied definitions, and the existing tables. Pure.
import { isDeepStrictEqual } from 'node:util'
import type { SchemaDefinition } from './collection.ts'
import type { ExistingTable } from './existing-tables.ts'
import { changeTable } from './plan-change.ts'
import { createTable, dropTable, hideTable } from './plan-table.ts'
import {
  addConstraintSql,
  alterSql,
  dropConstraintSql,
  emptyDraft,
  phases,
  type Applied,
  type Draft,
  type Step,
} from './reload-draft.ts'
import { constraintsOf, type Constraint } from './table-parts.ts'

export interface ReloadPlan {
  steps: Step[]
  /** Descriptions of the changes, for the response. */
  actions: string[]
  /** Changes that lose data. Nothing is done while one of them is not confirmed. */
  destructive: string[]
  /** Retained tables of deleted schemas, which are dropped when that is confirmed. */
  droppable: string[]
  /** The rows of `applied_schemas` after the reload. */
  applied: Applied[]
  /** The new or changed rows among them, and the names of deleted ones. */
  changed: Applied[]
  dropped: string[]
}

interface ReloadInput {
  tenantId: string
  /** The schemas, with the field of every reference filled in. */
  wanted: readonly SchemaDefinition[]
  before: readonly Applied[]
  tables: ReadonlyMap<string, ExistingTable>
  /** Confirmed lines of `destructive` and `droppable`. */
  confirmed: ReadonlySet<string>
}

export function planReload({ tenantId, wanted, before, tables, confirmed }: ReloadInput): ReloadPlan {
  const draft = emptyDraft()
  const plan = {
    droppable: [] as string[],
    applied: [] as Applied[],
    changed: [] as Applied[],
    dropped: [] as string[],
  }
  const known = new Map(before.map((applied) => [applied.definition.name, applied]))
  const rekeyed = rekeyedFields(wanted, known)
  for (const definition of wanted) {
    const applied = known.get(definition.name)
    known.delete(definition.name)
    const table = tables.get(definition.name)
    if (applied === undefined || table === undefined) createTable(draft, tenantId, definition)
    else changeTable(draft, definition, applied, table)
    planReferences(draft, definition, applied, table, rekeyed)
    const now = { definition, published: true }
    plan.applied.push(now)
    if (applied?.published !== true || !isSameDefinition(applied.definition, definition)) plan.changed.push(now)
  }
  for (const applied of known.values()) {
    const { definition, published } = applied
    const line = `the table of "${definition.name}", which has no schema, is dropped with its records`
    plan.droppable.push(line)
    if (confirmed.has(line)) {
      dropTable(draft, definition)
      plan.dropped.push(definition.name)
      continue
    }
    if (published) hideTable(draft, definition, tables.get(definition.name))
    const now = { definition, published: false }
    plan.applied.push(now)
    if (published) plan.changed.push(now)
  }
  return {
    ...plan,
    steps: phases.flatMap((phase) => draft.phases[phase]),
    actions: draft.actions,
    destructive: draft.destructive,
  }
}

/**
 * Plans references. A reference is dropped before either of its ends changes, and added again when all tables are complete.
 */
function planReferences(
  draft: Draft,
  definition: SchemaDefinition,
  applied: Applied | undefined,
  table: ExistingTable | undefined,
  rekeyed: ReadonlySet<string>,
): void {
  const { name } = definition
  const wanted = referencesOf(definition)
  const old = applied === undefined ? [] : referencesOf(applied.definition)
  const unchanged = new Set(
    wanted
      .filter(
        (reference) =>
          table?.constraints.has(reference.name) === true &&
          old.some((one) => one.name === reference.name && one.sql === reference.sql) &&
          !endsOf(name, reference).some((end) => rekeyed.has(end)),
      )
      .map((reference) => reference.name),
  )
  const known = new Set([...old, ...wanted].map((reference) => reference.name))
  const dropped = [...known].filter(
    (reference) => table?.constraints.has(reference) === true && !unchanged.has(reference),
  )
  const added = wanted.filter((reference) => !unchanged.has(reference.name))
  if (dropped.length > 0) draft.phases.unlink.push({ sql: alterSql(name, dropped.map(dropConstraintSql)) })
  if (added.length > 0) draft.phases.refer.push({ sql: alterSql(name, added.map(addConstraintSql)) })
}

function referencesOf(definition: SchemaDefinition): Constraint[] {
  return constraintsOf(definition).filter(({ kind }) => kind === 'reference')
}

function endsOf(collection: string, { field }: Constraint): string[] {
  return [`${collection}.${field.name}`, `${field.references?.collection ?? ''}.${field.references?.field ?? ''}`]
}

/** Returns the fields that are removed, or whose type or key changes. They must have no references in the meantime. */
function rekeyedFields(wanted: readonly SchemaDefinition[], known: ReadonlyMap<string, Applied>): Set<string> {
  const rekeyed = new Set<string>()
  for (const definition of wanted) {
    const fields = new Map(definition.fields.map((field) => [field.name, field]))
    for (const before of known.get(definition.name)?.definition.fields ?? []) {
      const now = fields.get(before.name)
      const isSame =
        now !== undefined && now.type === before.type && now.primary === before.primary && now.unique === before.unique
      if (!isSame) rekeyed.add(`${definition.name}.${before.name}`)
    }
  }
  return rekeyed
}

/** Compares as JSON, because stored definitions have no undefined members. */
function isSameDefinition(one: SchemaDefinition, other: SchemaDefinition): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))
}
