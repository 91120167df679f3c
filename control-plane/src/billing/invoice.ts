// An invoice: its content, the data that it was made of, and its state.
import { Type, type Static } from 'typebox'
import { AdjustmentBasis } from './adjustment.ts'
import { LineText } from './line.ts'
import { ControlError } from '../platform/errors.ts'
import { Party, PriceListText } from './price-list.ts'
import type { InvoiceState } from './invoice-state.ts'

const Decimal = LineText.properties.amount
const Instant = Type.String({ description: 'ISO 8601, UTC' })

/** One month that the lines concern, with everything that rating needs except the usage. */
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
  /** The number of closed hours, and the chain's hashes before the first and after the last. */
  usage: Type.Object({ hours: Type.Integer(), previous: Type.String(), hash: Type.String() }),
})
export type MonthBasis = Static<typeof MonthBasis>

/** The content of an invoice, which is fixed when the invoice is made and stored as it is. */
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
    /**
     * Decimal places that lines and taxes are rounded to; absent from older invoices, where only the payable amount is
     * rounded.
     */
    line_places: Type.Optional(Type.Integer({ minimum: 0, maximum: 6 })),
    /** The invoice's own month first, then the months that it corrects. */
    months: Type.Array(MonthBasis, { minItems: 1 }),
    /** The tenant's last correction when the invoice was made. */
    corrections: Type.Union([Type.Object({ number: Type.Integer(), hash: Type.String() }), Type.Null()]),
    /** The adjustments; absent from invoices that are older than adjustments. */
    adjustments: Type.Optional(Type.Array(AdjustmentBasis)),
  }),
})
export type InvoiceContent = Static<typeof InvoiceContent>

export interface Invoice {
  id: string
  tenantId: string
  /** The month's first instant, UTC. */
  month: Date
  state: InvoiceState
  /** A prefix and at least six digits, without a gap over all invoices that were ever final. Undefined for a draft. */
  number: string | undefined
  content: InvoiceContent
  createdAt: Date
  finalAt: Date | undefined
  voidedAt: Date | undefined
  voidReason: string | undefined
}

/** Returns the error for an invoice that does not exist. */
export function invoiceNotFound(): ControlError {
  return new ControlError('INVOICE_NOT_FOUND', 'There is no such invoice.')
}
