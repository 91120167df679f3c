// A query against its collection: every name in it resolved, or the error that names what is unknown. Pure.
import type { Collection, Column } from '../registry/collection.ts'
import type { Operator, Query } from '../request/read-query.ts'
import { nearest, restError } from '../rest-error.ts'

export interface PlannedFilter {
  column: Column
  operator: Operator
  negated: boolean
  values: string[]
}

export interface Plan {
  collection: Collection
  columns: Column[]
  filters: PlannedFilter[]
  order: { column: Column; direction: 'asc' | 'desc'; nulls: 'first' | 'last' | undefined }[]
  limit: number
  offset: number
}

/** Rows of a list without `limit`, and at most. */
export const maxRows = 1_000

export function planQuery(collection: Collection, query: Query): Plan {
  const column = (name: string): Column => {
    const found = collection.columns.get(name)
    if (found !== undefined) return found
    const meant = nearest(name, collection.columns.keys())
    throw restError('INVALID_QUERY', {
      code: '42703',
      message: `collection "${collection.name}" has no field "${name}"`,
      ...(meant === undefined ? {} : { hint: `did you mean "${meant}"?` }),
    })
  }
  const selected = query.select?.flatMap((name) => (name === '*' ? [...collection.columns.values()] : [column(name)]))
  return {
    collection,
    columns: [...new Set(selected ?? collection.columns.values())],
    filters: query.filters.map((filter) => ({ ...filter, column: column(filter.column) })),
    order: query.order.map((order) => ({ ...order, column: column(order.column) })),
    limit: Math.min(query.limit ?? maxRows, maxRows),
    offset: query.offset,
  }
}

/** A plan for the one record with this key. */
export function planOne(collection: Collection, key: string): Plan {
  const primary = collection.columns.get(collection.primary)
  if (primary === undefined) throw new Error(`collection ${collection.name} has no column ${collection.primary}`)
  return {
    collection,
    columns: [...collection.columns.values()],
    filters: [{ column: primary, operator: 'eq', negated: false, values: [key] }],
    order: [],
    limit: 1,
    offset: 0,
  }
}
