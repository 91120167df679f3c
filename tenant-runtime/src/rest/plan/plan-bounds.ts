// Bounds on what a short URL may request, so that the response is not a large multiple of the stored rows. Pure.
import type { Column } from '../registry/catalog.ts'
import { restError } from '../rest-error.ts'
import type { PlannedPath, PlannedValue } from './plan.ts'

/** The maximum number of items of a `select`, with those of embedded relations. */
export const maxOutputs = 200
/** The maximum uses of a column without a fixed size in one list of items, and in a whole `select`. */
export const maxPerList = 4
export const maxPerSelect = 16
/** The maximum number of filters on such a column, and of terms of an order that it may have. */
export const maxFilters = 100
export const maxOrders = 4

/** Types whose values are so small that repeating them does no harm. */
const smallTypes = new Set([
  ...[
    'boolean',
    'smallint',
    'integer',
    'bigint',
    'oid',
    'real',
    'double precision',
    'uuid',
    'date',
    'interval',
    'money',
  ],
  ...['timestamp with time zone', 'timestamp without time zone', 'time with time zone', 'time without time zone'],
  ...['inet', 'cidr', 'macaddr', 'macaddr8', 'pg_lsn', '"char"', 'name', 'point', 'lseg', 'box', 'line', 'circle'],
])
/** Aggregates whose result is small, whatever the values are. */
const smallAggregates: readonly unknown[] = ['count', 'sum', 'avg']

/** Counts what one request selects, filters and orders by. */
export class PlanBounds {
  #outputs = 0
  readonly #selected = new Map<Column, number>()
  readonly #filtered = new Map<Column, number>()
  readonly #ordered = new Map<Column, number>()

  /** Counts items of a `select`. @throws RuntimeError INVALID_QUERY */
  addOutputs(items: number): void {
    this.#outputs += items
    if (this.#outputs > maxOutputs)
      throw tooMany('select', `at most ${maxOutputs} items can be selected, with those of embedded relations`)
  }

  /**
   * Counts the values of one list of items.
   * @throws RuntimeError INVALID_QUERY that names the column
   */
  addList(values: readonly PlannedValue[]): void {
    const paths = new Map<Column, PlannedPath[]>()
    for (const { path, aggregate } of values) {
      if (path === undefined || smallTypes.has(path.column.base) || smallAggregates.includes(aggregate)) continue
      const { column } = path
      const others = paths.get(column) ?? []
      others.push(path)
      paths.set(column, others)
      // Different parts of a value are together no larger than the value.
      if (others.filter((other) => overlaps(other, path)).length > maxPerList)
        throw tooMany('select', `the field "${column.name}" is requested more than ${maxPerList} times in a list`)
    }
    for (const [column, list] of paths)
      count(this.#selected, column, Math.min(list.length, maxPerList), maxPerSelect, () =>
        tooMany('select', `the field "${column.name}" is requested more than ${maxPerSelect} times`),
      )
  }

  /** Counts a filter. @throws RuntimeError INVALID_QUERY */
  addFilter(column: Column): void {
    if (smallTypes.has(column.base)) return
    count(this.#filtered, column, 1, maxFilters, () =>
      tooMany(column.name, `a field can have at most ${maxFilters} filters`),
    )
  }

  /** Counts a term of an order. @throws RuntimeError INVALID_QUERY */
  addOrder(column: Column): void {
    if (smallTypes.has(column.base)) return
    count(this.#ordered, column, 1, maxOrders, () =>
      tooMany('order', `the field "${column.name}" is named more than ${maxOrders} times`),
    )
  }
}

function count(counts: Map<Column, number>, column: Column, more: number, max: number, error: () => Error): void {
  const total = (counts.get(column) ?? 0) + more
  if (total > max) throw error()
  counts.set(column, total)
}

/** Whether one path is the other, or inside of it. */
function overlaps(one: PlannedPath, other: PlannedPath): boolean {
  const [short, long] = one.steps.length < other.steps.length ? [one.steps, other.steps] : [other.steps, one.steps]
  return short.every(({ key }, n) => long[n]?.key === key)
}

function tooMany(parameter: string, message: string) {
  return restError('INVALID_QUERY', {
    code: 'PGRST100',
    message: `Invalid query parameter "${parameter}": ${message}.`,
  })
}
