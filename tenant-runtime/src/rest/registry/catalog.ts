// The part of a home that the interface serves: relations with their columns, their references, and functions. Pure.
import type { Field } from './collection.ts'
import type { RestSettings } from './rest-settings.ts'

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
  readonly comment?: string | undefined
  /** The function of a computed field, which has the column's name. */
  readonly computed?: ComputedBy
  /** The functions that convert values of the column's domain. */
  readonly representation?: Representation | undefined
}

/** The functions of a domain's casts, which determine the form of its values in requests and responses. */
export interface Representation {
  readonly toJson?: string
  /** Reads values of the bodies of requests. */
  readonly fromJson?: string
  /** Reads values of filters. */
  readonly fromText?: string
}

/** A tenant's function that takes a row of a relation. */
export interface ComputedBy {
  /** The name of the function in the home. */
  readonly routine: string
  /** Whether it changes nothing. */
  readonly isReading: boolean
}

/** Rows that a tenant's function returns for each row of a relation. */
export interface ComputedRelationship extends ComputedBy {
  /** The name of the function. */
  readonly name: string
  readonly to: string
  readonly isToMany: boolean
}

export interface Relation {
  /** The name in the schema of the interface, which requests use. */
  readonly name: string
  /** The name in the home, which statements use. */
  readonly table: string
  readonly kind: 'table' | 'view'
  /** The visible columns, in order. Others are hidden. */
  readonly columns: ReadonlyMap<string, Column>
  /** Columns that functions compute. They are only read, and only by name. */
  readonly computed: ReadonlyMap<string, Column>
  readonly computedRelationships: ReadonlyMap<string, ComputedRelationship>
  /** The visible columns of the primary key; of a view, if each of its rows is a row of one table with this key. */
  readonly key: readonly string[]
  /** Sets of columns with a unique constraint, including hidden columns. */
  readonly unique: readonly (readonly string[])[]
  /** `schemas`: by the rules of schemas. `no`: not through this interface. */
  readonly writable: 'yes' | 'no' | 'schemas'
  /** The field of the row's owner, which Postgres sets from the caller. */
  readonly ownerField: string | undefined
  /** Whether only the owner and the service see a row, and an index finds it by the owner. */
  readonly isOwnersOnly: boolean
  /** The changes that Postgres supports; not all views support them. */
  readonly changes: { readonly insert: boolean; readonly update: boolean; readonly delete: boolean }
  readonly comment: string | undefined
}

/** A foreign key between two tables, which are served themselves or through views. */
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

/** A served view with columns that are unchanged columns of a table. */
export interface ViewColumns {
  readonly view: string
  /** The names of the view's columns, by those of the table. */
  readonly columns: ReadonlyMap<string, string>
}

export interface Argument {
  /** The argument's name; empty for the only one of a function that takes its whole body, and for unnamed ones with defaults. */
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
  /** The name in the schema of the interface, which requests use. */
  readonly name: string
  /** The name in the home, which statements use. */
  readonly routine: string
  readonly arguments: readonly Argument[]
  readonly returns: {
    readonly kind: 'nothing' | 'value' | 'row'
    readonly type: string
    /** The plain name of the type behind domains. */
    readonly base: string
    /** The media type of a value, as the name of its domain. */
    readonly media: string | undefined
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

/** Makes a media type of rows, or of a function's value. */
export interface MediaHandler {
  /** The name of the aggregate; undefined for a value that has the media type. */
  readonly aggregate: string | undefined
  /** Whether the aggregate takes the rows of one relation, and not any rows. */
  readonly isOfRows: boolean
  /** The plain name of the type behind the domain. */
  readonly base: string
}

export interface Catalog {
  /** The schema of the interface to which it belongs. */
  readonly schema: string
  readonly relations: ReadonlyMap<string, Relation>
  readonly references: readonly Reference[]
  /** The views of each table. */
  readonly views: ReadonlyMap<string, readonly ViewColumns[]>
  /** Functions by name. Those with the same name differ in their arguments. */
  readonly routines: ReadonlyMap<string, readonly Routine[]>
  /** The names of the home's own types, and of their arrays. */
  readonly types: ReadonlySet<string>
  /** The names of functions that exist, but are not served. */
  readonly unserved: ReadonlySet<string>
  /** Aggregates by the name of their relation, which is empty for rows of any relation, and by their media type. */
  readonly handlers: ReadonlyMap<string, ReadonlyMap<string, MediaHandler>>
  /** Whether the code of the home may read the settings `request.…`, and make those of the response. */
  readonly mentions: { readonly request: boolean; readonly response: boolean }
  readonly settings: RestSettings
}
