// Selects what is served of a home (specification, sections 2.3 and 9.2). Pure.
//   a collection that a schema describes     the schema's fields, nothing else
//   the service's own collections            the columns that are named for them, read-only
//   other tables and views, made with SQL    completely, if they have row-level security
//   functions                                those that run with their caller's rights
import type { Catalog, Column, MediaHandler, Reference, Relation, Routine, ViewColumns } from './catalog.ts'
import { tableFields, type SchemaDefinition } from './collection.ts'
import { computedParts, computingRoutines, type ComputingRoutines } from './computed.ts'
import type { HomeDescription, HomeReference, HomeRelation, HomeRoutine } from './introspect.ts'
import { inSchema } from './named-schemas.ts'
import { defaultSettings, type RestSettings } from './rest-settings.ts'
import { ownRoutines, reservedCollections, systemCollections } from './system-collections.ts'

const ownershipPolicies: ReadonlySet<string> = new Set(['tenant', 'service', 'owner'])

export interface Published {
  home: HomeDescription
  schemas: readonly SchemaDefinition[]
  /** Collections whose schema was deleted. Their tables are retained, but not served. */
  withdrawn: readonly string[]
  /** Older published catalogs do not have them. */
  settings?: Partial<RestSettings>
}

/** Returns the catalog of each schema of the interface. */
export function publish(published: Published): ReadonlyMap<string, Catalog> {
  const settings = { ...defaultSettings, ...published.settings }
  return new Map(settings.db_schemas.map((schema) => [schema, publishSchema(published, settings, schema)]))
}

function publishSchema(
  { home: whole, schemas, withdrawn }: Published,
  settings: RestSettings,
  schema: string,
): Catalog {
  const home = inSchema(whole, settings.db_schemas, schema)
  const described = new Map(schemas.map((schema) => [schema.name, schema]))
  const hidden = new Set(withdrawn)
  const relations = new Map<string, Relation>()
  const computing = computingRoutines(home.routines)
  for (const found of home.relations) {
    const { stored = found.name } = found
    const definition = described.get(stored)
    const shown = systemCollections.get(stored)
    if (shown !== undefined)
      relations.set(found.name, relationOf(found, computing, { columns: shown.columns, writable: shown.writable }))
    else if (definition !== undefined) relations.set(found.name, describedBy(found, computing, definition))
    else if (found.guarded && !reservedCollections.has(stored) && !hidden.has(stored))
      relations.set(found.name, relationOf(found, computing, { writable: 'yes' }))
  }
  const routines = new Map<string, Routine[]>()
  const unserved = new Set(home.unserved)
  for (const found of home.routines) {
    const routine = routineOf(found, relations)
    if (routine === undefined) unserved.add(found.name)
    if (routine === undefined || ownRoutines.has(routine.routine)) continue
    routines.set(found.name, [...(routines.get(found.name) ?? []), routine])
  }
  return {
    schema,
    relations,
    references: home.references.flatMap((found) => referenceOf(found, relations)),
    views: viewsOf(home, relations),
    routines,
    types: new Set(home.types),
    unserved,
    handlers: handlersOf(home, relations),
    mentions: home.mentions ?? { request: true, response: true },
    settings,
  }
}

function handlersOf({ handlers = [] }: HomeDescription, relations: ReadonlyMap<string, Relation>): Catalog['handlers'] {
  const found = new Map<string, Map<string, MediaHandler>>()
  for (const { name, relation, media, base } of handlers) {
    if (relation !== null && !relations.has(relation)) continue
    const ofRelation = found.get(relation ?? '') ?? new Map<string, MediaHandler>()
    ofRelation.set(media, { aggregate: name, isOfRows: relation !== null, base })
    found.set(relation ?? '', ofRelation)
  }
  return found
}

/** Bits of `pg_relation_is_updatable`. */
const bits = { update: 4, insert: 8, delete: 16 }

/** Returns the served views of each table, which itself may not be served. */
function viewsOf(home: HomeDescription, relations: ReadonlyMap<string, Relation>): Map<string, ViewColumns[]> {
  const views = new Map<string, ViewColumns[]>()
  for (const { name, origins = [] } of home.relations) {
    const shown = relations.get(name)
    if (shown === undefined) continue
    const byTable = new Map<string, Map<string, string>>()
    for (const { column, table, tableColumn } of origins) {
      const columns = byTable.get(table) ?? new Map<string, string>()
      // The first of several columns with the same origin counts.
      if (shown.columns.has(column) && !columns.has(tableColumn)) columns.set(tableColumn, column)
      byTable.set(table, columns)
    }
    for (const [table, columns] of byTable) views.set(table, [...(views.get(table) ?? []), { view: name, columns }])
  }
  return views
}

function describedBy(found: HomeRelation, computing: ComputingRoutines, schema: SchemaDefinition): Relation {
  const fields = new Map(tableFields(schema).map((field) => [field.name, field]))
  const shown = relationOf(found, computing, {
    columns: [...fields.keys()],
    writable: 'yes',
    ownerField: schema.policy.ownerField,
    isOwnersOnly: isOwnersOnly(found, schema),
  })
  const columns = [...shown.columns].map(([name, column]) => [name, { ...column, field: fields.get(name) }] as const)
  return { ...shown, columns: new Map(columns) }
}

/** Whether only owners see the records. Policies that were added with SQL may show more. */
function isOwnersOnly({ policies = [] }: HomeRelation, { policy }: SchemaDefinition): boolean {
  return policy.type === 'ownership' && policies.length > 0 && policies.every((name) => ownershipPolicies.has(name))
}

interface Visibility {
  /** The visible columns; all of them when omitted. */
  columns?: readonly string[]
  writable: Relation['writable']
  ownerField?: string | undefined
  isOwnersOnly?: boolean
}

function relationOf(
  found: HomeRelation,
  computing: ComputingRoutines,
  { columns: shown, writable, ownerField, isOwnersOnly = false }: Visibility,
): Relation {
  const {
    name,
    stored = name,
    kind,
    comment,
    columns,
    key,
    unique,
    changes = bits.update | bits.insert | bits.delete,
  } = found
  const known = new Map(columns.map((column) => [column.name, column]))
  const names = shown ?? [...known.keys()]
  return {
    name,
    table: stored,
    kind,
    columns: new Map(
      names.flatMap((name) => {
        const column = known.get(name)
        if (column === undefined) return []
        const { type, base = type, nullable, default: initial, writable, casts, comment } = column
        const representation = casts ?? undefined
        const shown: Column = { name, type, base, nullable, default: initial ?? undefined, writable, field: undefined }
        const more = {
          ...(representation === undefined ? {} : { representation }),
          ...(typeof comment === 'string' ? { comment } : {}),
        }
        return [[name, { ...shown, ...more }] as const]
      }),
    ),
    ...computedParts(found, computing.get(name)),
    key: key.filter((column) => names.includes(column)),
    unique,
    writable,
    ownerField,
    isOwnersOnly,
    changes: {
      insert: (changes & bits.insert) > 0,
      update: (changes & bits.update) > 0,
      delete: (changes & bits.delete) > 0,
    },
    comment: comment ?? undefined,
  }
}

function referenceOf(found: HomeReference, relations: ReadonlyMap<string, Relation>): Reference[] {
  const { name, from, to, pairs } = found
  const [near, far] = [relations.get(from), relations.get(to)]
  const columns = pairs.map(([column]) => column)
  const isUnique =
    found.isUnique ?? near?.unique.some((set) => set.every((column) => columns.includes(column))) ?? false
  // Every key of a home contains the tenant's ID, so the other columns determine which records belong together.
  const shown = pairs.filter(([a, b]) => near?.columns.has(a) !== false && far?.columns.has(b) !== false)
  return shown.length === 0 ? [] : [{ name, from, to, pairs: shown, isUnique }]
}

function routineOf(
  { name, stored = name, comment, reading, arguments: all, defaults, returns }: HomeRoutine,
  relations: ReadonlyMap<string, Relation>,
): Routine | undefined {
  const taken = all.filter(({ mode }) => mode === 'i' || mode === 'b' || mode === 'v')
  const made = all.filter(({ mode }) => mode === 'o' || mode === 'b' || mode === 't')
  const isWhole = taken.length === 1 && taken[0]?.name === '' && /^(json|jsonb|text|xml|bytea)$/.test(taken[0].type)
  // A call can omit an unnamed argument with a default.
  const isCallable = (name: string, n: number) => name !== '' || n >= taken.length - defaults
  if (!isWhole && !taken.every(({ name }, n) => isCallable(name, n))) return undefined
  return {
    name,
    routine: stored,
    arguments: taken.map(({ name, type, base = type, mode }, n) => ({
      name,
      type,
      base,
      isOptional: n >= taken.length - defaults,
      isVariadic: mode === 'v',
    })),
    returns: {
      kind: returns.kind === 'void' ? 'nothing' : returns.kind,
      type: returns.type,
      base: returns.base ?? returns.type,
      media: returns.set ? undefined : (returns.media ?? undefined),
      isSet: returns.set,
      relation: returns.relation !== null && relations.has(returns.relation) ? returns.relation : undefined,
      columns: made.map(({ name, type, base = type }) => ({ name, type, base })),
    },
    isReading: reading,
    comment: comment ?? undefined,
  }
}
