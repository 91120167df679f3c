// Selects what is served of a home (specification, sections 2.3 and 9.2). Pure.
//   a collection that a schema describes     the schema's fields, nothing else
//   the service's own collections            the columns that are named for them, read-only
//   other tables and views, made with SQL    completely, if they have row-level security
//   functions                                those that run with their caller's rights
import type { Catalog, Column, Reference, Relation, Routine } from './catalog.ts'
import { tableFields, type SchemaDefinition } from './collection.ts'
import type { HomeDescription, HomeReference, HomeRelation, HomeRoutine } from './introspect.ts'
import { ownRoutines, reservedCollections, systemCollections } from './system-collections.ts'

const ownershipPolicies: ReadonlySet<string> = new Set(['tenant', 'service', 'owner'])

export interface Published {
  home: HomeDescription
  schemas: readonly SchemaDefinition[]
  /** Collections whose schema was deleted. Their tables are retained, but not served. */
  withdrawn: readonly string[]
}

export function publish({ home, schemas, withdrawn }: Published): Catalog {
  const described = new Map(schemas.map((schema) => [schema.name, schema]))
  const hidden = new Set(withdrawn)
  const relations = new Map<string, Relation>()
  for (const found of home.relations) {
    const schema = described.get(found.name)
    const shown = systemCollections.get(found.name)
    if (shown !== undefined)
      relations.set(found.name, relationOf(found, { columns: shown.columns, writable: shown.writable }))
    else if (schema !== undefined) relations.set(found.name, describedBy(found, schema))
    else if (found.guarded && !reservedCollections.has(found.name) && !hidden.has(found.name))
      relations.set(found.name, relationOf(found, { writable: 'yes' }))
  }
  const routines = new Map<string, Routine[]>()
  for (const found of home.routines) {
    const routine = routineOf(found, relations)
    if (routine === undefined || ownRoutines.has(found.name)) continue
    routines.set(found.name, [...(routines.get(found.name) ?? []), routine])
  }
  return { relations, references: home.references.flatMap((found) => referenceOf(found, relations)), routines }
}

function describedBy(found: HomeRelation, schema: SchemaDefinition): Relation {
  const fields = new Map(tableFields(schema).map((field) => [field.name, field]))
  const shown = relationOf(found, {
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
  { name, kind, comment, columns, key, unique }: HomeRelation,
  { columns: shown, writable, ownerField, isOwnersOnly = false }: Visibility,
): Relation {
  const known = new Map(columns.map((column) => [column.name, column]))
  const names = shown ?? [...known.keys()]
  return {
    name,
    kind,
    columns: new Map(
      names.flatMap((name) => {
        const column = known.get(name)
        if (column === undefined) return []
        const { base = column.type, default: initial } = column
        return [[name, { ...column, base, default: initial ?? undefined, field: undefined } satisfies Column] as const]
      }),
    ),
    key: key.filter((column) => names.includes(column)),
    unique,
    writable,
    ownerField,
    isOwnersOnly,
    comment: comment ?? undefined,
  }
}

function referenceOf({ name, from, to, pairs }: HomeReference, relations: ReadonlyMap<string, Relation>): Reference[] {
  const [near, far] = [relations.get(from), relations.get(to)]
  if (near === undefined || far === undefined) return []
  const columns = pairs.map(([column]) => column)
  // Every key of a home contains the tenant's ID, so the other columns determine which records belong together.
  const shown = pairs.filter(([a, b]) => near.columns.has(a) && far.columns.has(b))
  if (shown.length === 0) return []
  const isUnique = near.unique.some((set) => set.every((column) => columns.includes(column)))
  return [{ name, from, to, pairs: shown, isUnique }]
}

function routineOf(
  { name, comment, reading, arguments: all, defaults, returns }: HomeRoutine,
  relations: ReadonlyMap<string, Relation>,
): Routine | undefined {
  const taken = all.filter(({ mode }) => mode === 'i' || mode === 'b' || mode === 'v')
  const made = all.filter(({ mode }) => mode === 'o' || mode === 'b' || mode === 't')
  const isWhole = taken.length === 1 && taken[0]?.name === '' && /^(json|jsonb|text|xml|bytea)$/.test(taken[0].type)
  if (!isWhole && taken.some((argument) => argument.name === '')) return undefined
  return {
    name,
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
      isSet: returns.set,
      relation: returns.relation !== null && relations.has(returns.relation) ? returns.relation : undefined,
      columns: made.map(({ name, type, base = type }) => ({ name, type, base })),
    },
    isReading: reading,
    comment: comment ?? undefined,
  }
}
