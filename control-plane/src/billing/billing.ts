// Makes invoices of tenants' months of what the ledger, the plans and the prices say.
import { ControlError } from '../errors.ts'
import type { PlanHistory } from '../plans/plan-history.ts'
import type { ClosedUsage, StoredMonth } from '../usage/closed-usage.ts'
import type { Adjustment } from './adjustment.ts'
import type { AdjustmentStore } from './adjustment-store.ts'
import { listFor, type BillingConfig } from './billing-config.ts'
import { composeInvoice } from './compose.ts'
import { correctedMonths, earlierFacts, readEarlier, type EarlierMonth } from './earlier-months.ts'
import type { InvoiceContent } from './invoice.ts'
import type { InvoiceStore } from './invoice-store.ts'
import { monthText, nextMonth } from './months.ts'
import type { Party, PriceListText } from './price-list.ts'

export interface BillingDeps {
  /** Undefined: there are no prices, and no invoices are made. */
  config: BillingConfig | undefined
  usage: Pick<ClosedUsage, 'months'>
  history: Pick<PlanHistory, 'periodsOf'>
  invoices: Pick<InvoiceStore, 'pricesOf' | 'buyers'>
  adjustments: Pick<AdjustmentStore, 'due'>
  /** Tenants' names, those of tenants that are gone too; without those that nobody knows. */
  namesOf(tenantIds: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** A tenant's invoice, or why there is none: what `compose` throws. */
export type Composed = { tenantId: string; content: InvoiceContent } | { tenantId: string; content: undefined; problem: unknown }

export interface Billing {
  config: BillingConfig | undefined
  /**
   * @param month its first instant, UTC
   * @throws ControlError BILLING_OFF, NO_PRICES; INVOICE_NOT_FOUND when there was no plan; MONTH_NOT_CLOSED while usage of the month may still come
   */
  compose(tenantId: string, month: Date): Promise<InvoiceContent>
  /** Of many tenants, in their order; what is wrong with one does not hold up the others. @throws ControlError BILLING_OFF, NO_PRICES */
  composeAll(tenantIds: readonly string[], month: Date): Promise<Composed[]>
  /** Who is invoiced: as it was set, or the tenant's name. */
  buyerOf(tenantId: string): Promise<Party>
}

/** All that invoices of a month are made of, read at once for many tenants. */
interface Readings {
  month: Date
  prices: PriceListText
  config: BillingConfig
  own: ReadonlyMap<string, StoredMonth>
  periods: Awaited<ReturnType<PlanHistory['periodsOf']>>
  earlier: readonly EarlierMonth[]
  adjustments: ReadonlyMap<string, Adjustment[]>
  buyers: ReadonlyMap<string, Party>
}

export function createBilling(deps: BillingDeps): Billing {
  const { config, usage, history, invoices, adjustments } = deps

  const buyersOf = async (tenantIds: readonly string[]): Promise<ReadonlyMap<string, Party>> => {
    const said = await invoices.buyers(tenantIds)
    const names = await deps.namesOf(tenantIds.filter((id) => !said.has(id)))
    return new Map(tenantIds.map((id) => [id, said.get(id) ?? { name: names.get(id) ?? id, lines: [] }]))
  }

  const buyerOf = async (tenantId: string): Promise<Party> => of(await buyersOf([tenantId]), tenantId)

  const read = async (tenantIds: readonly string[], month: Date): Promise<Readings> => {
    if (config === undefined) throw new ControlError('BILLING_OFF', 'this installation makes no invoices: it has no prices (TENANTRY_PRICES_FILE)')
    const list = listFor(config, month)
    if (list === undefined) throw new ControlError('NO_PRICES', `there are no prices for ${monthText(month)}`)
    const [own, periods, due, buyers] = await Promise.all([
      usage.months(tenantIds, month), history.periodsOf(tenantIds, month, nextMonth(month)), adjustments.due(tenantIds, month), buyersOf(tenantIds),
    ])
    const earlier = await readEarlier({ config, usage, history, invoices }, own, month)
    return { month, prices: list.text, config, own, periods, earlier, adjustments: due, buyers }
  }

  const composeAll = async (tenantIds: readonly string[], month: Date): Promise<Composed[]> => {
    const readings = await read(tenantIds, month)
    const composed: Composed[] = []
    for (const tenantId of tenantIds) {
      composed.push(outcomeOf(readings, tenantId))
      // A tenant's takes milliseconds; the API is not to wait for all of them.
      await new Promise(setImmediate)
    }
    return composed
  }

  return {
    config,
    buyerOf,
    composeAll,

    async compose(tenantId, month) {
      const [composed] = await composeAll([tenantId], month)
      if (composed === undefined) throw new Error('nothing was composed')
      if (composed.content === undefined) throw composed.problem
      return composed.content
    },
  }
}

function outcomeOf(readings: Readings, tenantId: string): Composed {
  try {
    return { tenantId, content: contentOf(readings, tenantId) }
  } catch (problem) {
    return { tenantId, content: undefined, problem }
  }
}

function contentOf({ month, prices, config, own, periods, earlier, adjustments, buyers }: Readings, tenantId: string): InvoiceContent {
  const stored = of(own, tenantId)
  const held = periods.get(tenantId) ?? []
  if (stored.closedAt === undefined && !stored.hasHours && held.length === 0) {
    throw new ControlError('INVOICE_NOT_FOUND', `there is nothing to invoice: the tenant had no plan in ${monthText(month)}`)
  }
  if (stored.closedAt === undefined) throw new ControlError('MONTH_NOT_CLOSED', `${monthText(month)} is not closed yet: usage of it may still come`)

  const { hours, previous, hash, corrections } = stored.read()
  const before = earlierFacts(earlier, tenantId, correctedMonths(stored, month))
  const billed = [month, ...before.facts.map((facts) => facts.month)].map(monthText)
  const known = [...before.corrections, ...corrections].filter(({ hour }) => billed.includes(monthText(hour)))
  const due = adjustments.get(tenantId) ?? []
  const foreign = due.find(({ currency }) => currency !== prices.currency)
  if (foreign !== undefined) throw new Error(`the adjustment ${foreign.id} is in ${foreign.currency} and can't be billed in ${prices.currency}`)
  const letterhead = { seller: config.seller, notes: config.notes, buyer: of(buyers, tenantId) }
  return composeInvoice({ tenantId, own: { month, prices, periods: held, hours, previous, hash }, earlier: before.facts, corrections: known, adjustments: due }, letterhead)
}

function of<T>(found: ReadonlyMap<string, T>, tenantId: string): T {
  const its = found.get(tenantId)
  if (its === undefined) throw new Error(`nothing was read of ${tenantId}`)
  return its
}
