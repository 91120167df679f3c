// An invoice: what stands on it, what it was made of, and its states.
import { Type, type Static } from 'typebox'
import { AdjustmentBasis } from './adjustment.ts'
import { LineText } from './line.ts'
import { Party, PriceListText } from './price-list.ts'
import type { InvoiceState } from './invoice-state.ts'

const Decimal = LineText.properties.amount
const Instant = Type.String({ description: 'ISO 8601, UTC' })

/** One month that lines are of, with all but the usage that rating needs. */
export const MonthBasis = Type.Object({
  month: LineText.properties.month,
  prices: PriceListText,
  plan_periods: Type.Array(
    Type.Object({
      plan: Type.String(),
      weaker_isolation: Type.Optional(Type.String()),
      since: Instant,
      until: Instant,
    }),
  ),
  /** The closed hours: how many they are, and the chain before the first and after the last. */
  usage: Type.Object({ hours: Type.Integer(), previous: Type.String(), hash: Type.String() }),
})
export type MonthBasis = Static<typeof MonthBasis>

/** All of an invoice that is fixed when it is made; kept as it is. */
export const InvoiceContent = Type.Object({
  tenant_id: Type.String(),
  tenant_name: Type.Optional(
    Type.String({ description: 'As it was when the invoice was made; absent from older invoices' }),
  ),
  month: LineText.properties.month,
  period: Type.Object({ start: Instant, end: Instant }),
  currency: Type.String(),
  seller: Party,
  buyer: Party,
  notes: Type.Array(Type.String()),
  lines: Type.Array(LineText),
  net: Decimal,
  taxes: Type.Array(Type.Object({ name: Type.String(), rate: Decimal, net: Decimal, tax: Decimal })),
  total: Decimal,
  payable: Type.String({ description: 'The total in whole minor units of the currency' }),
  basis: Type.Object({
    /** Decimal places that lines and taxes are rounded to; absent from older invoices, of which only the payable amount is rounded. */
    line_places: Type.Optional(Type.Integer({ minimum: 0, maximum: 6 })),
    /** The invoice's own month first, then those that it corrects. */
    months: Type.Array(MonthBasis, { minItems: 1 }),
    /** The tenant's last correction that was known. */
    corrections: Type.Union([Type.Object({ number: Type.Integer(), hash: Type.String() }), Type.Null()]),
    /** Absent from invoices of before there were any. */
    adjustments: Type.Optional(Type.Array(AdjustmentBasis)),
  }),
})
export type InvoiceContent = Static<typeof InvoiceContent>

export interface Invoice {
  id: string
  tenantId: string
  /** First instant, UTC. */
  month: Date
  state: InvoiceState
  /** Of all invoices that were ever final, without a gap: prefix and at least six digits. Undefined for a draft. */
  number: string | undefined
  content: InvoiceContent
  createdAt: Date
  finalAt: Date | undefined
  voidedAt: Date | undefined
  voidReason: string | undefined
}
