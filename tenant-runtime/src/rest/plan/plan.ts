// What a request asks for, with every name in it resolved: what `sql/` makes statements of.
import type { Catalog, Column, Relation, Relationship, Routine } from '../registry/catalog.ts'
import type { JsonStep } from '../request/json-path.ts'
import type { Test } from '../request/read-conditions.ts'
import type { Aggregate } from '../request/read-select.ts'

export interface PlannedPath {
  column: Column
  steps: readonly JsonStep[]
}

export interface PlannedValue extends Aggregation {
  kind: 'value'
  /** In the answer. */
  name: string
  /** Undefined: whole rows, counted. */
  path: PlannedPath | undefined
  cast: string | undefined
}

/** Another relation's rows that belong to each row. */
export interface Embedding {
  /** How the rest of the request may name it. */
  names: readonly string[]
  relationship: Relationship
  /** The table in between, where there is one. */
  junction: Relation | undefined
  isInner: boolean
  isSpread: boolean
  plan: ReadPlan
}

export type PlannedField =
  | PlannedValue
  | { kind: 'embedded'; name: string; embedding: Embedding }
  | { kind: 'spread'; embedding: Embedding; columns: readonly SpreadColumn[] }

/** A column of a spread relation, as its parent has it. */
interface SpreadColumn extends Aggregation {
  name: string
}

export interface Aggregation {
  aggregate: Aggregate | undefined
  aggregateCast: string | undefined
}

export type PlannedCondition =
  | { kind: 'test'; negated: boolean; path: PlannedPath; test: Test }
  /** There is a row of it. */
  | { kind: 'has'; negated: boolean; embedding: Embedding }
  /** The caller owns it. Row-level security says the same, and decides; here the planner sees it, and finds an index. */
  | { kind: 'own'; negated: false; column: Column }
  /** Behind a row that has these values in the order. */
  | { kind: 'after'; negated: false; terms: readonly PlannedOrder[]; values: readonly (string | null)[] }
  | { kind: 'and' | 'or'; negated: boolean; members: readonly PlannedCondition[] }

export interface PlannedOrder {
  path: PlannedPath
  direction: 'asc' | 'desc'
  nulls: 'first' | 'last' | undefined
  /** By a column of the one row of another relation. */
  by: { relationship: Relationship; relation: Relation } | undefined
}

/** What is planned against, and for whom. */
export interface PlanScope {
  catalog: Catalog
  /** The service: owners' rows are all the caller's to see. */
  seesAll: boolean
}

export interface ReadPlan {
  relation: Relation
  fields: readonly PlannedField[]
  embeddings: readonly Embedding[]
  where: readonly PlannedCondition[]
  order: readonly PlannedOrder[]
  /** Undefined: all, in an embedding. */
  limit: number | undefined
  offset: number
}

export interface CallPlan {
  routine: Routine
  /** Arguments that are given. */
  given: readonly string[]
  /** Undefined when the answer has no columns: it is a value, values, or nothing. */
  read: ReadPlan | undefined
  /** Which of the values. */
  page: { limit: number; offset: number }
}

/** Its rows are groups of the relation's. */
export function isAggregated({ fields }: Pick<ReadPlan, 'fields'>): boolean {
  return columnsOf(fields).some(({ aggregate }) => aggregate !== undefined)
}

/** All columns that rows with these fields have. */
export function columnsOf(fields: readonly PlannedField[]): SpreadColumn[] {
  return fields.flatMap((field) => {
    if (field.kind === 'embedded') return [{ name: field.name, aggregate: undefined, aggregateCast: undefined }]
    return field.kind === 'spread' ? field.columns : [field]
  })
}

/** The same fields before they are aggregated. */
export function ungrouped(fields: readonly PlannedField[]): PlannedField[] {
  const none = { aggregate: undefined, aggregateCast: undefined }
  return fields.map((field) => {
    if (field.kind === 'embedded') return field
    return field.kind === 'spread'
      ? { ...field, columns: field.columns.map((column) => ({ ...column, ...none })) }
      : { ...field, ...none }
  })
}

export function isSamePath(one: PlannedPath | undefined, other: PlannedPath): boolean {
  return one !== undefined && one.column === other.column && JSON.stringify(one.steps) === JSON.stringify(other.steps)
}
