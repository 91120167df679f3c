// What the interface serves of a home: relations with their columns, how they refer to each other, and functions. Pure.
import type { Field } from './collection.ts'

export interface Column {
  readonly name: string
  /** Postgres' type as it is written in SQL, with its modifier: `character(5)`. */
  readonly type: string
  /** The plain name of the type behind domains, without a modifier: `character`. */
  readonly base: string
  readonly nullable: boolean
  /** SQL of the default; undefined without one, or when Postgres alone makes the value. */
  readonly default: string | undefined
  /** False for what Postgres alone makes. */
  readonly writable: boolean
  /** Of a collection that a schema describes. */
  readonly field: Field | undefined
}

export interface Relation {
  readonly name: string
  readonly kind: 'table' | 'view'
  /** Every column that is shown, in order; others stay hidden. */
  readonly columns: ReadonlyMap<string, Column>
  /** Columns of the primary key that are shown; none of a view. */
  readonly key: readonly string[]
  /** Column sets that hold no two equal rows, as Postgres knows them: those that are hidden included. */
  readonly unique: readonly (readonly string[])[]
  /** `schemas`: by the rules of schemas. `no`: by nobody, here. */
  readonly writable: 'yes' | 'no' | 'schemas'
  /** Whose the rows are: Postgres sets it from the caller. */
  readonly ownerField: string | undefined
  /** Nobody but them and the service sees them, and an index finds them by their owner. */
  readonly isOwnersOnly: boolean
  readonly comment: string | undefined
}

/** A foreign key between two relations that are served. */
export interface Reference {
  /** Name of the constraint. */
  readonly name: string
  readonly from: string
  readonly to: string
  /** Pairs of columns that are equal, hidden ones included. */
  readonly pairs: readonly (readonly [from: string, to: string])[]
  /** At most one row refers to each. */
  readonly isUnique: boolean
}

export interface Argument {
  /** Empty for the only one of a function that takes its whole body. */
  readonly name: string
  /** Postgres' type as it is written in SQL. Postgres keeps no modifier of an argument: of `character(5)` it is `bpchar`. */
  readonly type: string
  /** The plain name of the type behind domains. */
  readonly base: string
  readonly isOptional: boolean
  readonly isVariadic: boolean
}

export interface Routine {
  readonly name: string
  readonly arguments: readonly Argument[]
  readonly returns: {
    readonly kind: 'nothing' | 'value' | 'row'
    readonly type: string
    readonly isSet: boolean
    /** Rows are of this relation. */
    readonly relation: string | undefined
    /** Of a row: its columns, when no relation tells them and they are known. */
    readonly columns: readonly { readonly name: string; readonly type: string; readonly base: string }[]
  }
  /** It changes nothing, so that GET may call it. */
  readonly isReading: boolean
  readonly comment: string | undefined
}

export interface Catalog {
  readonly relations: ReadonlyMap<string, Relation>
  readonly references: readonly Reference[]
  /** By name; several of one name differ in their arguments. */
  readonly routines: ReadonlyMap<string, readonly Routine[]>
}

/** Of two relations, seen from the first. Tables in between (`through`) make it many to many. */
export interface Relationship {
  readonly name: string
  readonly to: string
  readonly isToMany: boolean
  readonly pairs: readonly (readonly [near: string, far: string])[]
  /** Columns of the first that refer; what may stand for the relationship's name. */
  readonly columns: readonly string[]
  readonly through: Junction | undefined
}

interface Junction {
  readonly relation: string
  readonly near: readonly (readonly [near: string, junction: string])[]
  readonly far: readonly (readonly [junction: string, far: string])[]
  /** Its key is made of the two: it is there for nothing else. */
  readonly isKeyed: boolean
}

/** All ways from a relation to others. */
export function relationshipsOf({ relations, references }: Catalog, from: string): Relationship[] {
  const found: Relationship[] = []
  for (const reference of references) {
    if (reference.from === from) {
      found.push({
        name: reference.name,
        to: reference.to,
        isToMany: false,
        pairs: reference.pairs,
        columns: reference.pairs.map(([near]) => near),
        through: undefined,
      })
    }
    if (reference.to === from) {
      const pairs = reference.pairs.map(([far, near]) => [near, far] as const)
      found.push({
        name: reference.name,
        to: reference.from,
        isToMany: !reference.isUnique,
        pairs,
        columns: [],
        through: undefined,
      })
    }
  }
  // A table that refers to both, once each, joins them.
  for (const near of references) {
    if (near.to !== from) continue
    for (const far of references) {
      if (far === near || far.from !== near.from) continue
      const key = relations.get(near.from)?.key ?? []
      const isKeyed = [...near.pairs, ...far.pairs].every(([column]) => key.includes(column))
      const through = {
        relation: near.from,
        near: near.pairs.map(([junction, own]) => [own, junction] as const),
        far: far.pairs,
        isKeyed,
      }
      found.push({ name: near.from, to: far.to, isToMany: true, pairs: [], columns: [], through })
    }
  }
  return found
}
