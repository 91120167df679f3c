// Makes the invoice of a tenant's month of what the ledger, the plans and the prices say.
import { ControlError } from '../errors.ts'
import type { PlanHistory } from '../plans/plan-history.ts'
import type { ClosedMonth, ClosedUsage } from '../usage/closed-usage.ts'
import { listFor, type BillingConfig } from './billing-config.ts'
import { composeInvoice, type MonthFacts } from './compose.ts'
import type { InvoiceContent } from './invoice.ts'
import type { InvoiceStore } from './invoice-store.ts'
import { monthText, nextMonth } from './months.ts'
import type { Party, PriceListText } from './price-list.ts'

export interface BillingDeps {
  /** Undefined: there are no prices, and no invoices are made. */
  config: BillingConfig | undefined
  usage: Pick<ClosedUsage, 'month'>
  history: Pick<PlanHistory, 'periods'>
  invoices: Pick<InvoiceStore, 'pricesOf' | 'buyer'>
  /** A tenant's name, that of one that is gone too; undefined where nobody knows it. */
  nameOf(tenantId: string): Promise<string | undefined>
}

export interface Billing {
  config: BillingConfig | undefined
  /**
   * @param month its first instant, UTC
   * @throws ControlError BILLING_OFF, NO_PRICES; INVOICE_NOT_FOUND when there was no plan; MONTH_NOT_CLOSED while usage of the month may still come
   */
  compose(tenantId: string, month: Date): Promise<InvoiceContent>
  /** Who is invoiced: as it was set, or the tenant's name. */
  buyerOf(tenantId: string): Promise<Party>
}

export function createBilling(deps: BillingDeps): Billing {
  const { config, usage, history, invoices } = deps

  const factsOf = async (tenantId: string, closed: ClosedMonth, prices: PriceListText): Promise<MonthFacts> => {
    const { month, hours, previous, hash } = closed
    return { month, prices, periods: await history.periods(tenantId, month, nextMonth(month)), hours, previous, hash }
  }

  /** Months from one to another, inclusive. */
  const closedMonths = async (tenantId: string, from: Date, to: Date): Promise<ClosedMonth[]> => {
    const months: ClosedMonth[] = []
    for (let month = from; month <= to; month = nextMonth(month)) months.push(await usage.month(tenantId, month))
    return months
  }

  const buyerOf = async (tenantId: string): Promise<Party> =>
    (await invoices.buyer(tenantId)) ?? { name: (await deps.nameOf(tenantId)) ?? tenantId, lines: [] }

  return {
    config,
    buyerOf,

    async compose(tenantId, month) {
      if (config === undefined) throw new ControlError('BILLING_OFF', 'this installation makes no invoices: it has no prices (TENANTRY_PRICES_FILE)')
      const list = listFor(config, month)
      if (list === undefined) throw new ControlError('NO_PRICES', `there are no prices for ${monthText(month)}`)
      const own = await usage.month(tenantId, month)
      if (own.closedAt === undefined && own.hours.length === 0 && (await history.periods(tenantId, month, nextMonth(month))).length === 0) {
        throw new ControlError('INVOICE_NOT_FOUND', `there is nothing to invoice: the tenant had no plan in ${monthText(month)}`)
      }
      if (own.closedAt === undefined) throw new ControlError('MONTH_NOT_CLOSED', `${monthText(month)} is not closed yet: usage of it may still come`)

      const corrected = [...new Set(own.corrections.map(({ hour }) => monthText(hour)))].filter((text) => text < monthText(month)).sort()
      const oldest = corrected[0]
      // What was billed with the months in between is of the earlier ones, too.
      const known = oldest === undefined ? [own] : [...(await closedMonths(tenantId, new Date(`${oldest}-01T00:00:00Z`), new Date(month.getTime() - 1))), own]
      const earlier: MonthFacts[] = []
      for (const closed of known) {
        if (!corrected.includes(monthText(closed.month))) continue
        const prices = (await invoices.pricesOf(tenantId, closed.month)) ?? listFor(config, closed.month)?.text
        // Before the first price list nothing was invoiced, and nothing can be wrong.
        if (prices !== undefined) earlier.push(await factsOf(tenantId, closed, prices))
      }
      const billed = [month, ...earlier.map((facts) => facts.month)].map(monthText)
      const corrections = known.flatMap((closed) => closed.corrections).filter(({ hour }) => billed.includes(monthText(hour)))
      const letterhead = { seller: config.seller, notes: config.notes, buyer: await buyerOf(tenantId) }
      return composeInvoice({ tenantId, own: await factsOf(tenantId, own, list.text), earlier, corrections }, letterhead)
    },
  }
}
