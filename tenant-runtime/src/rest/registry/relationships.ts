// The relationships of a served relation with others, by the foreign keys of tables. A view has those of the tables whose
// key columns it shows unchanged. Pure.
import type { Catalog, ComputedBy, Reference } from './catalog.ts'

/** A relationship of two relations, seen from the first. A junction table (`through`) makes it many-to-many. */
export interface Relationship {
  readonly name: string
  readonly to: string
  readonly isToMany: boolean
  /** Whether a row of either relation has at most one related row. */
  readonly isOneToOne: boolean
  readonly pairs: readonly Pair[]
  readonly through: Junction | undefined
  /** The function that returns the related rows of a row. Then there are no pairs. */
  readonly computed?: ComputedBy
}

type Pair = readonly [near: string, far: string]

interface Junction {
  readonly relation: string
  readonly near: readonly Pair[]
  readonly far: readonly Pair[]
  /** The foreign keys with which it references the first relation, and the other one. */
  readonly names: Pair
  /** Whether its key consists of the two references, so that it has no other purpose. */
  readonly isKeyed: boolean
}

/** A relation at the end of a foreign key: the table itself, or a view of it. */
interface End {
  name: string
  /** The view's columns by those of the table; undefined for the table itself. */
  columns: ReadonlyMap<string, string> | undefined
}

/** The maximum number of relationships of a relation with views. */
const maxOfViews = 1_000
/** The maximum number of relations of a catalog whose relationships are stored. */
const maxStored = 64

const stored = new WeakMap<Catalog, Map<string, readonly Relationship[]>>()

/** Returns all relationships from a relation to others. They are found once for each catalog. */
export function relationshipsOf(catalog: Catalog, from: string): readonly Relationship[] {
  const ofCatalog = stored.get(catalog) ?? new Map<string, readonly Relationship[]>()
  stored.set(catalog, ofCatalog)
  const known = ofCatalog.get(from)
  if (known !== undefined) return known
  const found = findRelationships(catalog, from)
  if (ofCatalog.size >= maxStored) ofCatalog.clear()
  ofCatalog.set(from, found)
  return found
}

function findRelationships(catalog: Catalog, from: string): Relationship[] {
  const own = ownEnds(catalog, from)
  const withTables: Relationship[] = []
  const withViews: Relationship[] = []
  const add = (relationship: Relationship, isOfView: boolean) => {
    if (!isOfView) withTables.push(relationship)
    else if (withViews.length < maxOfViews) withViews.push(relationship)
  }
  for (const reference of catalog.references) {
    const { name, isUnique } = reference
    for (const [one, other, isToMany] of [
      ['from', 'to', false],
      ['to', 'from', !isUnique],
    ] as const) {
      const end = own.get(reference[one])
      if (end === undefined) continue
      const near = columnsOf(end, reference, one)
      for (const far of near === undefined ? [] : endsOf(catalog, reference[other])) {
        const pairs = paired(near, columnsOf(far, reference, other))
        if (pairs !== undefined)
          add(
            { name, to: far.name, isToMany, isOneToOne: isUnique, pairs, through: undefined },
            far.columns !== undefined,
          )
      }
    }
  }
  // A table that references both relations joins them.
  for (const near of catalog.references) {
    const end = own.get(near.to)
    if (end === undefined) continue
    for (const far of catalog.references) {
      if (far === near || far.from !== near.from) continue
      for (const junction of junctionsOf(catalog, near.from)) {
        for (const other of endsOf(catalog, far.to)) {
          const through = throughOf(catalog, [end, near], junction, [other, far])
          if (through !== undefined)
            add(
              { name: junction.name, to: other.name, isToMany: true, isOneToOne: false, pairs: [], through },
              junction.columns !== undefined || other.columns !== undefined,
            )
        }
      }
    }
  }
  return [...withTables, ...withViews]
}

function throughOf(
  { relations }: Catalog,
  [own, near]: readonly [End, Reference],
  junction: End,
  [other, far]: readonly [End, Reference],
): Junction | undefined {
  const nearPairs = paired(columnsOf(own, near, 'to'), columnsOf(junction, near, 'from'))
  const farPairs = paired(columnsOf(junction, far, 'from'), columnsOf(other, far, 'to'))
  if (nearPairs === undefined || farPairs === undefined) return undefined
  const key = relations.get(junction.name)?.key ?? []
  const isKeyed = [...nearPairs.map(([, column]) => column), ...farPairs.map(([column]) => column)].every((column) =>
    key.includes(column),
  )
  return { relation: junction.name, near: nearPairs, far: farPairs, names: [near.name, far.name], isKeyed }
}

/** Returns the tables of which the relation has columns: itself, or those of a view. */
function ownEnds({ relations, views }: Catalog, name: string): Map<string, End> {
  const ends = new Map<string, End>()
  if (relations.get(name)?.kind === 'table') ends.set(name, { name, columns: undefined })
  for (const [table, list] of views) {
    const shown = list.find(({ view }) => view === name)
    if (shown !== undefined) ends.set(table, { name, columns: shown.columns })
  }
  return ends
}

/** Returns the table, if it is served, and its views. */
function endsOf({ relations, views }: Catalog, table: string): End[] {
  return [
    ...(relations.has(table) ? [{ name: table, columns: undefined }] : []),
    ...(views.get(table) ?? []).map(({ view, columns }) => ({ name: view, columns })),
  ]
}

/** Returns the junction table, or its views if it is not served. */
function junctionsOf(catalog: Catalog, table: string): End[] {
  const ends = endsOf(catalog, table)
  return catalog.relations.has(table) ? ends.slice(0, 1) : ends
}

/** Returns the columns of a foreign key's end; undefined when a view lacks one. */
function columnsOf({ columns }: End, { pairs }: Reference, side: 'from' | 'to'): string[] | undefined {
  const names = pairs.map(([from, to]) => (side === 'from' ? from : to))
  if (columns === undefined) return names
  const shown = names.flatMap((name) => columns.get(name) ?? [])
  return shown.length === names.length ? shown : undefined
}

function paired(near: readonly string[] | undefined, far: readonly string[] | undefined): Pair[] | undefined {
  if (near === undefined || far === undefined) return undefined
  return near.map((column, n) => [column, far[n] ?? ''] as const)
}
