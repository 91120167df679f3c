// Paging by keys (`cursor=`): a page begins behind the last row of the one before, wherever that stands by now. Pure.
import { restError } from '../rest-error.ts'
import { isAggregated, type PlannedOrder, type ReadPlan } from './plan.ts'

export interface KeysetPage {
  plan: ReadPlan
  /** The order, made total by the primary key. */
  terms: readonly PlannedOrder[]
}

/**
 * @param cursor as `nextCursor` gave it; empty for the first page
 * @throws RuntimeError INVALID_QUERY when the list can't be paged so, or the cursor is of another one
 */
export function planKeyset(plan: ReadPlan, cursor: string): KeysetPage {
  const { relation, order } = plan
  if (relation.key.length === 0) throw badCursor(`"${relation.name}" has no primary key to page by`)
  if (isAggregated(plan)) throw badCursor('aggregates are not paged')
  if (plan.offset > 0) throw badCursor('a cursor and an offset exclude each other')
  if (order.some(({ by }) => by !== undefined)) throw badCursor('the order is by columns of the collection itself')
  const ordered = new Set(order.filter(({ path }) => path.steps.length === 0).map(({ path }) => path.column.name))
  const direction = order.at(-1)?.direction ?? 'asc'
  const rest = relation.key.flatMap((name): PlannedOrder[] => {
    const column = relation.columns.get(name)
    return column === undefined || ordered.has(name)
      ? []
      : [{ path: { column, steps: [] }, direction, nulls: undefined, by: undefined }]
  })
  const terms = [...order, ...rest]
  if (cursor === '') return { plan: { ...plan, order: terms }, terms }
  const values = readCursor(cursor, terms)
  return {
    plan: { ...plan, order: terms, where: [...plan.where, { kind: 'after', negated: false, terms, values }] },
    terms,
  }
}

/** @param key of a page's last row: a JSON array of texts */
export function nextCursor(terms: readonly PlannedOrder[], key: string): string {
  return Buffer.from(JSON.stringify([describe(terms), ...(JSON.parse(key) as unknown[])])).toString('base64url')
}

function readCursor(cursor: string, terms: readonly PlannedOrder[]): (string | null)[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    throw badCursor('it is none that a page gave')
  }
  const [order, ...values] = Array.isArray(parsed) ? (parsed as unknown[]) : []
  if (order !== describe(terms) || values.length !== terms.length) throw badCursor('it is of a list with another order')
  return values.map((value) => {
    if (value === null || (typeof value === 'string' && !value.includes('\0'))) return value
    throw badCursor('it is none that a page gave')
  })
}

/** The order, so that a cursor of another one is told. */
function describe(terms: readonly PlannedOrder[]): string {
  return terms
    .map(({ path: { column, steps }, direction, nulls }) =>
      [column.name, ...steps.map(({ arrow, key }) => `${arrow}${key}`), '.', direction, nulls ?? ''].join(''),
    )
    .join(',')
}

function badCursor(error: string) {
  return restError('INVALID_QUERY', { code: 'PGRST100', message: `query parameter "cursor": ${error}` })
}
