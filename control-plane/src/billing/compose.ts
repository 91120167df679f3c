// Composes an invoice from the facts of its months. Pure: making and verifying an invoice both use it.
import type { Correction, HourBucket } from '../usage/index.ts'
import type { PlanPeriod } from '../plans/index.ts'
import { adjustmentLine, toAdjustmentBasis, type AdjustmentFact } from './adjustment.ts'
import { correctionLines } from './corrections.ts'
import type { InvoiceContent, MonthBasis } from './invoice.ts'
import { lineText, type Line } from './line.ts'
import { currencyDecimalPlaces, decimalText, exactDecimalPlaces, payableText, smallestAmount } from './money.ts'
import { monthText, nextMonth } from '../platform/months.ts'
import { readPriceList, type Party, type PriceList, type PriceListText } from './price-list.ts'
import { rateMonth } from './rating.ts'
import { totalsOf } from './totals.ts'

export interface MonthFacts {
  /** The month's first instant, UTC. */
  month: Date
  prices: PriceListText
  periods: readonly PlanPeriod[]
  /** The closed hours, in order. */
  hours: readonly HourBucket[]
  /** The chain's hash before the first hour. `hash` is the one after the last. */
  previous: string
  hash: string
}

export interface InvoiceFacts {
  tenantId: string
  /** The invoiced month. */
  own: MonthFacts
  /** Earlier months that the invoice corrects, oldest first. */
  earlier: readonly MonthFacts[]
  /** All corrections of these months that are billed with the invoiced month or an earlier one. */
  corrections: readonly Correction[]
  /** The adjustments that this invoice bills, oldest first. */
  adjustments: readonly AdjustmentFact[]
  /** The decimal places that lines and taxes are rounded to; undefined for invoices from before lines were rounded. */
  lineDecimalPlaces: number | undefined
}

interface Letterhead {
  tenant_name?: string
  seller: Party
  buyer: Party
  notes: readonly string[]
}

/**
 * Composes the invoice of the given facts.
 * @throws Error when months are in different currencies, or as `rateMonth` and `readPriceList`
 */
export function composeInvoice(
  facts: InvoiceFacts,
  { tenant_name: tenantName, seller, buyer, notes }: Letterhead,
): InvoiceContent {
  const { own, earlier, corrections, adjustments, lineDecimalPlaces } = facts
  const { currency, tax } = own.prices
  const lines = linesOf(facts)
  const totals = totalsOf(lines, stepOf(facts))
  const last = corrections.reduce<Correction | undefined>(
    (latest, one) => (latest === undefined || one.number > latest.number ? one : latest),
    undefined,
  )
  return {
    tenant_id: facts.tenantId,
    ...(tenantName === undefined ? {} : { tenant_name: tenantName }),
    month: monthText(own.month),
    period: { start: own.month.toISOString(), end: nextMonth(own.month).toISOString() },
    currency,
    seller,
    buyer,
    notes: [...notes],
    lines: lines.map((line) => lineText(line, lineDecimalPlaces ?? exactDecimalPlaces)),
    net: decimalText(totals.net),
    taxes: totals.taxes.map(({ rate, net, tax: amount }) => ({
      name: tax.name,
      rate: decimalText(rate),
      net: decimalText(net),
      tax: decimalText(amount),
    })),
    total: decimalText(totals.total),
    payable: payableText(totals.total, currencyDecimalPlaces(currency)),
    basis: {
      ...(lineDecimalPlaces === undefined ? {} : { line_places: lineDecimalPlaces }),
      months: [own, ...earlier].map(toBasis),
      corrections: last === undefined ? null : { number: last.number, hash: last.hash },
      adjustments: adjustments.map(toAdjustmentBasis),
    },
  }
}

/** Returns the month's own lines, then the corrections of earlier months, then the adjustments. */
export function linesOf(facts: InvoiceFacts): Line[] {
  const { own, earlier, corrections, adjustments } = facts
  const step = stepOf(facts)
  const billed = own.month
  const rated = (facts: MonthFacts, known: (correction: Correction) => boolean) => {
    const late = corrections.filter(
      (correction) => monthText(correction.hour) === monthText(facts.month) && known(correction),
    )
    return rateMonth({
      month: facts.month,
      prices: listOf(facts),
      periods: facts.periods,
      usage: [...facts.hours, ...late],
      step,
    })
  }
  const foreign = earlier.find(({ prices }) => prices.currency !== own.prices.currency)
  if (foreign !== undefined) {
    throw new Error(
      `Month ${monthText(foreign.month)} was invoiced in ${foreign.prices.currency} ` +
        `and can't be corrected by an invoice in ${own.prices.currency}.`,
    )
  }
  return [
    ...rated(own, ({ billedMonth }) => billedMonth <= billed),
    ...earlier.flatMap((month) =>
      correctionLines(
        rated(month, ({ billedMonth }) => billedMonth <= billed),
        rated(month, ({ billedMonth }) => billedMonth < billed),
      ),
    ),
    ...adjustments.map((adjustment) => adjustmentLine(adjustment, billed, listOf(own).tax.rate, step)),
  ]
}

function stepOf({ lineDecimalPlaces }: InvoiceFacts): bigint {
  return smallestAmount(lineDecimalPlaces ?? exactDecimalPlaces)
}

const lists = new WeakMap<PriceListText, PriceList>()

/** Returns the parsed price list. All invoices of a month share one text, which is parsed once. */
function listOf({ month, prices }: MonthFacts): PriceList {
  const list = lists.get(prices) ?? readPriceList(prices, `price list of ${monthText(month)}: `)
  lists.set(prices, list)
  return list
}

function toBasis({ month, prices, periods, hours, previous, hash }: MonthFacts): MonthBasis {
  return {
    month: monthText(month),
    prices,
    plan_periods: periods.map(({ plan, weakerIsolation, since, until }) => ({
      plan,
      ...(weakerIsolation === undefined ? {} : { weaker_isolation: weakerIsolation }),
      since: since.toISOString(),
      until: until.toISOString(),
    })),
    usage: { hours: hours.length, previous, hash },
  }
}
