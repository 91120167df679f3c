// The part of a home that the interface serves: relations with their columns, their references, and functions. Pure.
import type { Field } from './collection.ts'

export interface Column {
  readonly name: string
  /** Postgres' type as it is written in SQL, with its modifier: `character(5)`. */
  readonly type: string
  /** The plain name of the type behind domains, without a modifier: `character`. */
  readonly base: string
  readonly nullable: boolean
  /** The SQL of the default; undefined without one, or when only Postgres generates the value. */
  readonly default: string | undefined
  /** False for a column that only Postgres generates. */
  readonly writable: boolean
  /** The field, when a schema describes the collection. */
  readonly field: Field | undefined
}

export interface Relation {
  readonly name: string
  readonly kind: 'table' | 'view'
  /** The visible columns, in order. Others are hidden. */
  readonly columns: ReadonlyMap<string, Column>
  /** The visible columns of the primary key; none for a view. */
  readonly key: readonly string[]
  /** Sets of columns with a unique constraint, including hidden columns. */
  readonly unique: readonly (readonly string[])[]
  /** `schemas`: by the rules of schemas. `no`: not through this interface. */
  readonly writable: 'yes' | 'no' | 'schemas'
  /** The field of the row's owner, which Postgres sets from the caller. */
  readonly ownerField: string | undefined
  /** Whether only the owner and the service see a row, and an index finds it by the owner. */
  readonly isOwnersOnly: boolean
  readonly comment: string | undefined
}

/** A foreign key between two served relations. */
export interface Reference {
  /** The name of the constraint. */
  readonly name: string
  readonly from: string
  readonly to: string
  /** Pairs of equal columns, including hidden ones. */
  readonly pairs: readonly (readonly [from: string, to: string])[]
  /** Whether at most one row references each row. */
  readonly isUnique: boolean
}

export interface Argument {
  /** The argument's name; empty for the only one of a function that takes its whole body. */
  readonly name: string
  /**
   * Postgres' type as it is written in SQL. Postgres stores no modifier of an argument: `character(5)` becomes `bpchar`.
   */
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
    /** The relation of the rows, if there is one. */
    readonly relation: string | undefined
    /** The columns of a row, when they are known and no relation describes them. */
    readonly columns: readonly { readonly name: string; readonly type: string; readonly base: string }[]
  }
  /** Whether it changes nothing, so that GET may call it. */
  readonly isReading: boolean
  readonly comment: string | undefined
}

export interface Catalog {
  readonly relations: ReadonlyMap<string, Relation>
  readonly references: readonly Reference[]
  /** Functions by name. Those with the same name differ in their arguments. */
  readonly routines: ReadonlyMap<string, readonly Routine[]>
}

/** A relationship of two relations, seen from the first. A junction table (`through`) makes it many-to-many. */
export interface Relationship {
  readonly name: string
  readonly to: string
  readonly isToMany: boolean
  readonly pairs: readonly (readonly [near: string, far: string])[]
  /** The referencing columns of the first relation, whose name may also mean the relationship. */
  readonly columns: readonly string[]
  readonly through: Junction | undefined
}

interface Junction {
  readonly relation: string
  readonly near: readonly (readonly [near: string, junction: string])[]
  readonly far: readonly (readonly [junction: string, far: string])[]
  /** Whether its key consists of the two references, so that it has no other purpose. */
  readonly isKeyed: boolean
}

/** Returns all relationships from a relation to others. */
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
  // A table that references both relations joins them.
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
