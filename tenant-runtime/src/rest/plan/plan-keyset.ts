// Paging by keys (`cursor=`): a page begins after the last row of the previous one, wherever that row is now. Pure.
import { restError } from '../rest-error.ts'
import { isAggregated, type PlannedOrder, type ReadPlan } from './plan.ts'

export interface KeysetPage {
  plan: ReadPlan
  /** The order, made total by the primary key. */
  terms: readonly PlannedOrder[]
}

/**
 * Plans a page.
 * @param cursor the cursor of `nextCursor`; empty for the first page
 * @throws RuntimeError INVALID_QUERY when the list cannot be paged by keys, or the cursor is another list's
 */
export function planKeyset(plan: ReadPlan, cursor: string): KeysetPage {
  const { relation, order } = plan
  if (relation.key.length === 0) throw badCursor(`"${relation.name}" has no primary key`)
  if (isAggregated(plan)) throw badCursor('aggregates cannot be paged')
  if (plan.offset > 0) throw badCursor('it cannot be combined with an offset')
  if (order.some(({ by }) => by !== undefined)) throw badCursor('the order must be by columns of the collection itself')
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

/**
 * Returns the cursor of the next page.
 * @param key the key of a page's last row: a JSON array of texts
 */
export function nextCursor(terms: readonly PlannedOrder[], key: string): string {
  return Buffer.from(JSON.stringify([describe(terms), ...(JSON.parse(key) as unknown[])])).toString('base64url')
}

function readCursor(cursor: string, terms: readonly PlannedOrder[]): (string | null)[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    throw badCursor('it is not the cursor of a page')
  }
  const [order, ...values] = Array.isArray(parsed) ? (parsed as unknown[]) : []
  if (order !== describe(terms) || values.length !== terms.length)
    throw badCursor('it belongs to a list with another order')
  return values.map((value) => {
    if (value === null || (typeof value === 'string' && !value.includes('\0'))) return value
    throw badCursor('it is not the cursor of a page')
  })
}

/** Describes the order, so that a cursor of another order is detected. */
function describe(terms: readonly PlannedOrder[]): string {
  return terms
    .map(({ path: { column, steps }, direction, nulls }) =>
      [column.name, ...steps.map(({ arrow, key }) => `${arrow}${key}`), '.', direction, nulls ?? ''].join(''),
    )
    .join(',')
}

function badCursor(reason: string) {
  return restError('INVALID_QUERY', { code: 'PGRST100', message: `Invalid query parameter "cursor": ${reason}.` })
}
