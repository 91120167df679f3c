// The plan of a request, with every name resolved, from which `sql/` makes statements.
import type { Catalog, Column, Relation, Routine } from '../registry/catalog.ts'
import type { Relationship } from '../registry/relationships.ts'
import type { JsonStep } from '../request/json-path.ts'
import type { Test } from '../request/read-conditions.ts'
import type { Aggregate } from '../request/read-select.ts'

export interface PlannedPath {
  column: Column
  steps: readonly JsonStep[]
}

export interface PlannedValue extends Aggregation {
  kind: 'value'
  /** The name in the response. */
  name: string
  /** Undefined means whole rows, which are counted. */
  path: PlannedPath | undefined
  cast: string | undefined
}

/** Another relation's rows that belong to each row. */
export interface Embedding {
  /** The names by which the rest of the request may refer to it. */
  names: readonly string[]
  relationship: Relationship
  /** The junction table, if there is one. */
  junction: Relation | undefined
  isInner: boolean
  isSpread: boolean
  /** Whether the response has nothing of it. */
  isEmpty: boolean
  plan: ReadPlan
}

export type PlannedField =
  | PlannedValue
  | { kind: 'embedded'; name: string; embedding: Embedding }
  | { kind: 'spread'; embedding: Embedding; columns: readonly SpreadColumn[] }

/** A column of a spread relation in the rows of its parent. */
export interface SpreadColumn extends Aggregation {
  name: string
  /** Undefined for whole rows, and for JSON of further relations. */
  path: PlannedPath | undefined
  cast: string | undefined
  /** Whether it is JSON of further relations. */
  isJson?: true
}

export interface Aggregation {
  aggregate: Aggregate | undefined
  aggregateCast: string | undefined
}

export type PlannedCondition =
  | { kind: 'test'; negated: boolean; path: PlannedPath; test: Test }
  /** The embedded relation has a row. */
  | { kind: 'has'; negated: boolean; embedding: Embedding }
  /**
   * The caller owns the row. Row-level security decides this, but with this condition Postgres' planner can use an index.
   */
  | { kind: 'own'; negated: false; column: Column }
  /** The row is after one with these values in the order. */
  | { kind: 'after'; negated: false; terms: readonly PlannedOrder[]; values: readonly (string | null)[] }
  | { kind: 'and' | 'or'; negated: boolean; members: readonly PlannedCondition[] }

export interface PlannedOrder {
  path: PlannedPath
  direction: 'asc' | 'desc'
  nulls: 'first' | 'last' | undefined
  /** The relation of the column, when it is not the plan's own. */
  by: OtherOrder | undefined
}

export type OtherOrder =
  /** The one related row. */
  | { kind: 'row'; relationship: Relationship; relation: Relation }
  /** A column of a spread relation, by its position in `columns`. */
  | { kind: 'spread'; embedding: Embedding; position: number }

/** The catalog of the plan, and what its caller may see. */
export interface PlanScope {
  catalog: Catalog
  /** True for the service, which may see the rows of all owners. */
  seesAll: boolean
  /** Whether the operator and the tenant allow aggregates. */
  allowsAggregates: boolean
}

export interface ReadPlan {
  relation: Relation
  fields: readonly PlannedField[]
  embeddings: readonly Embedding[]
  where: readonly PlannedCondition[]
  order: readonly PlannedOrder[]
  /** Undefined means all rows, of a change or a to-one relation. */
  limit: number | undefined
  offset: number
}

export interface CallPlan {
  routine: Routine
  /** The names of the given arguments. */
  given: readonly string[]
  /** Undefined when the result has no columns: it is a value, values, or nothing. */
  read: ReadPlan | undefined
  /** The range of the values. */
  page: { limit: number; offset: number }
}

export const unaggregated: Aggregation = { aggregate: undefined, aggregateCast: undefined }

/** Whether the plan's rows are groups of the relation's rows. */
export function isAggregated({ fields }: Pick<ReadPlan, 'fields'>): boolean {
  return columnsOf(fields).some(({ aggregate }) => aggregate !== undefined)
}

/** Returns all columns of rows with these fields. */
export function columnsOf(fields: readonly PlannedField[]): SpreadColumn[] {
  return fields.flatMap((field) => {
    if (field.kind === 'embedded')
      return [{ name: field.name, path: undefined, cast: undefined, isJson: true, ...unaggregated }]
    return field.kind === 'spread' ? field.columns : [field]
  })
}

/** Returns the same fields without their aggregates. */
export function ungrouped(fields: readonly PlannedField[]): PlannedField[] {
  return fields.map((field) => {
    if (field.kind === 'embedded') return field
    return field.kind === 'spread'
      ? { ...field, columns: field.columns.map((column) => ({ ...column, ...unaggregated })) }
      : { ...field, ...unaggregated }
  })
}

export function isSamePath(one: PlannedPath | undefined, other: PlannedPath): boolean {
  return one !== undefined && one.column === other.column && JSON.stringify(one.steps) === JSON.stringify(other.steps)
}
