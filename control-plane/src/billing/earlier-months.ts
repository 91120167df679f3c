// Earlier months that an invoice corrects: reads them for all tenants, and selects what one tenant's invoice needs.
import type { PlanHistory } from '../plans/index.ts'
import type { ClosedUsage, Correction, StoredMonth } from '../usage/index.ts'
import { priceListFor, type BillingConfig } from './billing-config.ts'
import type { MonthFacts } from './compose.ts'
import type { InvoiceStore } from './store-invoices.ts'
import { monthText, nextMonth, startOfMonth } from '../platform/months.ts'
import type { PriceListText } from './price-list.ts'

interface EarlierMonthDeps {
  config: BillingConfig
  usage: Pick<ClosedUsage, 'months'>
  history: Pick<PlanHistory, 'periodsOf'>
  invoices: Pick<InvoiceStore, 'pricesOf'>
}

/** The facts of one earlier month, for all tenants with corrections of it or of a month before it. */
export interface EarlierMonth {
  month: Date
  usage: ReadonlyMap<string, StoredMonth>
  periods: Awaited<ReturnType<PlanHistory['periodsOf']>>
  /** The price lists that the tenants' invoices of the month used, by tenant. */
  prices: ReadonlyMap<string, PriceListText>
  /** The configured price list of the month, for tenants that were not invoiced; undefined before the first list. */
  list: PriceListText | undefined
}

/** Returns the first instants of the months before `month` that its corrections concern, oldest first. */
export function correctedMonths({ corrected }: StoredMonth, month: Date): Date[] {
  const months = new Map(corrected.map((hour) => [startOfMonth(hour).getTime(), startOfMonth(hour)]))
  return [...months.values()].filter((one) => one < month).sort((a, b) => a.getTime() - b.getTime())
}

/**
 * Reads the months from the oldest corrected one of any tenant up to `month`, oldest first, with a few queries for
 * each.
 */
export async function readEarlier(
  { config, usage, history, invoices }: EarlierMonthDeps,
  own: ReadonlyMap<string, StoredMonth>,
  month: Date,
): Promise<EarlierMonth[]> {
  const oldest = new Map(
    [...own].flatMap(([tenantId, stored]) =>
      correctedMonths(stored, month)
        .slice(0, 1)
        .map((first): [string, Date] => [tenantId, first]),
    ),
  )
  const months: EarlierMonth[] = []
  for (let at = earliest(oldest.values()) ?? month; at < month; at = nextMonth(at)) {
    // Months in between may have billed corrections of the earlier ones.
    const tenants: string[] = []
    for (const [tenantId, first] of oldest) if (first <= at) tenants.push(tenantId)
    const [stored, periods, prices] = await Promise.all([
      usage.months(tenants, at),
      history.periodsOf(tenants, at, nextMonth(at)),
      invoices.pricesOf(tenants, at),
    ])
    months.push({ month: at, usage: stored, periods, prices, list: priceListFor(config, at)?.text })
  }
  return months
}

/**
 * Returns the facts of one tenant's corrected months, and all corrections that were billed with months since the oldest
 * of them.
 */
export function earlierFacts(
  earlier: readonly EarlierMonth[],
  tenantId: string,
  corrected: readonly Date[],
): { facts: MonthFacts[]; corrections: Correction[] } {
  const [oldest] = corrected
  if (oldest === undefined) return { facts: [], corrections: [] }
  const texts = corrected.map(monthText)
  const facts: MonthFacts[] = []
  const corrections: Correction[] = []
  for (const { month, usage, periods, prices, list } of earlier) {
    const stored = usage.get(tenantId)
    if (month < oldest || stored === undefined) continue
    const closed = stored.read()
    corrections.push(...closed.corrections)
    // Before the first price list nothing was invoiced, so there is nothing to correct.
    const by = prices.get(tenantId) ?? list
    if (!texts.includes(monthText(month)) || by === undefined) continue
    facts.push({
      month,
      prices: by,
      periods: periods.get(tenantId) ?? [],
      hours: closed.hours,
      previous: closed.previous,
      hash: closed.hash,
    })
  }
  return { facts, corrections }
}

function earliest(dates: Iterable<Date>): Date | undefined {
  let first: Date | undefined
  for (const date of dates) if (first === undefined || date < first) first = date
  return first
}
