// Makes tenants' monthly invoices from the usage ledger, the plan history and the prices.
import { ControlError } from '../platform/errors.ts'
import { settleMilliseconds, startOfHour, type ClosedUsage, type StoredMonth } from '../usage/index.ts'
import type { PlanHistory } from '../plans/index.ts'
import type { Adjustment } from './adjustment.ts'
import type { AdjustmentStore } from './store-adjustments.ts'
import { priceListFor, type BillingConfig } from './billing-config.ts'
import { composeInvoice } from './compose.ts'
import { correctedMonths, earlierFacts, readEarlier, type EarlierMonth } from './earlier-months.ts'
import type { InvoiceContent } from './invoice.ts'
import type { InvoiceStore } from './store-invoices.ts'
import { currencyDecimalPlaces, readDecimalText } from './money.ts'
import { monthBefore, monthText, nextMonth, startOfMonth } from '../platform/months.ts'
import type { Party, PriceListText } from './price-list.ts'

export interface BillingDeps {
  /** The prices; undefined when this installation makes no invoices. */
  config: BillingConfig | undefined
  usage: Pick<ClosedUsage, 'months' | 'closedUntil'>
  history: Pick<PlanHistory, 'periodsOf'>
  invoices: Pick<InvoiceStore, 'pricesOf' | 'buyers'>
  adjustments: Pick<AdjustmentStore, 'due'>
  /** Returns tenants' names, including those of deleted tenants. Unknown tenants are left out. */
  namesOf(tenantIds: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** A tenant's invoice, or the error that `compose` throws for it. */
type Composed = { tenantId: string; content: InvoiceContent } | { tenantId: string; content: undefined; error: unknown }

export interface Upcoming {
  content: InvoiceContent
  /** The end of the included usage: hours before this instant are included. */
  asOf: Date
}

/** The total of a preview in micro-units of the currency, or the error of the tenant's preview. */
export type UpcomingTotal = { totalMicro: bigint; error?: undefined } | { error: unknown }

/** Everything that a month's invoices are made of, read at once for many tenants. */
interface Readings {
  month: Date
  prices: PriceListText
  config: BillingConfig
  own: ReadonlyMap<string, StoredMonth>
  periods: Awaited<ReturnType<PlanHistory['periodsOf']>>
  earlier: readonly EarlierMonth[]
  adjustments: ReadonlyMap<string, Adjustment[]>
  buyers: ReadonlyMap<string, Party>
  /** The names of known tenants. */
  names: ReadonlyMap<string, string>
}

/** Composes invoices of tenants. */
export type Billing = ReturnType<typeof createBilling>

export function createBilling(deps: BillingDeps) {
  const { config, usage, history, invoices, adjustments } = deps

  const partiesOf = async (tenantIds: readonly string[]): Promise<Pick<Readings, 'buyers' | 'names'>> => {
    const [set, names] = await Promise.all([invoices.buyers(tenantIds), deps.namesOf(tenantIds)])
    return {
      names,
      buyers: new Map(tenantIds.map((id) => [id, set.get(id) ?? { name: names.get(id) ?? id, lines: [] }])),
    }
  }

  const buyerOf = async (tenantId: string): Promise<Party> => ofTenant((await partiesOf([tenantId])).buyers, tenantId)

  const read = async (tenantIds: readonly string[], month: Date): Promise<Readings> => {
    if (config === undefined)
      throw new ControlError('BILLING_OFF', 'Billing is off: this installation has no prices (TENANTRY_PRICES_FILE).')
    const list = priceListFor(config, month)
    if (list === undefined) throw new ControlError('NO_PRICES', `There are no prices for ${monthText(month)}.`)
    const [own, periods, due, parties] = await Promise.all([
      usage.months(tenantIds, month),
      history.periodsOf(tenantIds, month, nextMonth(month)),
      adjustments.due(tenantIds, month),
      partiesOf(tenantIds),
    ])
    const earlier = await readEarlier({ config, usage, history, invoices }, own, month)
    return { month, prices: list.text, config, own, periods, earlier, adjustments: due, ...parties }
  }

  const composeAll = async (tenantIds: readonly string[], month: Date): Promise<Composed[]> => {
    const readings = await read(tenantIds, month)
    const composed: Composed[] = []
    for (const tenantId of tenantIds) {
      composed.push(outcomeOf(readings, tenantId))
      // One invoice takes milliseconds to compose; requests are served in between.
      await new Promise(setImmediate)
    }
    return composed
  }

  /**
   * Returns the tenants for which the month is used and priced but has no invoice yet. Its invoice is then the tenant's
   * next one and takes the adjustments.
   */
  const pendingInvoices = async (tenantIds: readonly string[], month: Date): Promise<ReadonlySet<string>> => {
    if (config === undefined || priceListFor(config, month) === undefined) return new Set()
    const [periods, invoiced] = await Promise.all([
      history.periodsOf(tenantIds, month, nextMonth(month)),
      invoices.pricesOf(tenantIds, month),
    ])
    return new Set(tenantIds.filter((id) => periods.has(id) && !invoiced.has(id)))
  }

  /** Reads what the current month's previews of tenants are made of. */
  const readUpcoming = async (tenantIds: readonly string[], at: Date): Promise<Readings> => {
    const month = startOfMonth(at)
    const [readings, pending] = await Promise.all([
      read(tenantIds, month),
      pendingInvoices(tenantIds, monthBefore(month)),
    ])
    const own = [...readings.adjustments].filter(([id]) => !pending.has(id))
    return { ...readings, adjustments: new Map(own) }
  }

  return {
    config,
    /** Returns the party that is invoiced: the buyer that was set, or the tenant's name. */
    buyerOf,
    /**
     * Composes the invoices of many tenants, in their order. An error of one tenant does not stop the others.
     * @throws ControlError BILLING_OFF, NO_PRICES
     */
    composeAll,

    /**
     * Returns a preview of the current month's invoice: the closed hours so far, and the present plan until the month's
     * end. It is not stored.
     * @throws ControlError as `compose`, but not MONTH_NOT_CLOSED
     */
    async upcoming(tenantId: string, at: Date): Promise<Upcoming> {
      const asOf = await usage.closedUntil(tenantId, startOfHour(new Date(at.getTime() - settleMilliseconds)))
      const readings = await readUpcoming([tenantId], at)
      checkPlanned(readings, tenantId)
      return { asOf, content: contentOf(readings, tenantId) }
    },

    /**
     * Returns the total of each tenant's preview, tax included, or the error that `upcoming` throws for it.
     * @throws ControlError BILLING_OFF, NO_PRICES
     */
    async upcomingTotals(tenantIds: readonly string[], at: Date): Promise<ReadonlyMap<string, UpcomingTotal>> {
      const readings = await readUpcoming(tenantIds, at)
      const totals = new Map<string, UpcomingTotal>()
      for (const tenantId of tenantIds) {
        totals.set(tenantId, totalOf(readings, tenantId))
        // One preview takes milliseconds to compose; requests are served in between.
        await new Promise(setImmediate)
      }
      return totals
    },

    /**
     * Composes a tenant's invoice of a month.
     * @param month its first instant, UTC
     * @throws ControlError BILLING_OFF, NO_PRICES; INVOICE_NOT_FOUND when the tenant had no plan; MONTH_NOT_CLOSED while
     *   usage of the month may still arrive
     */
    async compose(tenantId: string, month: Date): Promise<InvoiceContent> {
      const [composed] = await composeAll([tenantId], month)
      if (composed === undefined) throw new Error('No invoice was composed.')
      if (composed.content === undefined) throw composed.error
      return composed.content
    },
  }
}

function outcomeOf(readings: Readings, tenantId: string): Composed {
  try {
    checkPlanned(readings, tenantId)
    if (ofTenant(readings.own, tenantId).closedAt === undefined)
      throw new ControlError(
        'MONTH_NOT_CLOSED',
        `Month ${monthText(readings.month)} is not closed yet: its usage may still change.`,
      )
    return { tenantId, content: contentOf(readings, tenantId) }
  } catch (error) {
    return { tenantId, content: undefined, error }
  }
}

function totalOf(readings: Readings, tenantId: string): UpcomingTotal {
  try {
    checkPlanned(readings, tenantId)
    return { totalMicro: readDecimalText(contentOf(readings, tenantId).total) }
  } catch (error) {
    // A tenant without a plan in this month owes nothing.
    if (error instanceof ControlError && error.code === 'INVOICE_NOT_FOUND') return { totalMicro: 0n }
    return { error }
  }
}

function checkPlanned({ month, own, periods }: Readings, tenantId: string): void {
  const { closedAt, hasHours } = ofTenant(own, tenantId)
  if (closedAt !== undefined || hasHours || periods.has(tenantId)) return
  throw new ControlError(
    'INVOICE_NOT_FOUND',
    `There is nothing to invoice: the tenant had no plan in ${monthText(month)}.`,
  )
}

function contentOf(
  { month, prices, config, own, periods, earlier, adjustments, buyers, names }: Readings,
  tenantId: string,
): InvoiceContent {
  const stored = ofTenant(own, tenantId)
  const { hours, previous, hash, corrections } = stored.read()
  const before = earlierFacts(earlier, tenantId, correctedMonths(stored, month))
  const billed = [month, ...before.facts.map((facts) => facts.month)].map(monthText)
  const known = [...before.corrections, ...corrections].filter(({ hour }) => billed.includes(monthText(hour)))
  const due = adjustments.get(tenantId) ?? []
  const foreign = due.find(({ currency }) => currency !== prices.currency)
  if (foreign !== undefined)
    throw new Error(`The adjustment ${foreign.id} is in ${foreign.currency} and can't be billed in ${prices.currency}.`)
  const name = names.get(tenantId)
  const letterhead = {
    ...(name === undefined ? {} : { tenant_name: name }),
    seller: config.seller,
    notes: config.notes,
    buyer: ofTenant(buyers, tenantId),
  }
  return composeInvoice(
    {
      tenantId,
      own: { month, prices, periods: periods.get(tenantId) ?? [], hours, previous, hash },
      earlier: before.facts,
      corrections: known,
      adjustments: due,
      lineDecimalPlaces: currencyDecimalPlaces(prices.currency),
    },
    letterhead,
  )
}

function ofTenant<T>(found: ReadonlyMap<string, T>, tenantId: string): T {
  const its = found.get(tenantId)
  if (its === undefined) throw new Error(`Nothing was read for the tenant ${tenantId}.`)
  return its
}
