// Invoices as the API returns them: the stored content, with each line described and in the units of its price.
import { Type, type Static } from 'typebox'
import type { Upcoming } from './billing.ts'
import { describeLine, quantityText } from './describe.ts'
import { InvoiceContent, type Invoice } from './invoice.ts'
import { invoiceStates } from './invoice-state.ts'
import { LineText, readLine } from './line.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])

const Head = {
  invoice_id: Type.String(),
  number: Type.Union([Type.String(), Type.Null()], {
    description: 'Without a gap over all invoices; null for a draft',
  }),
  state: Type.Enum([...invoiceStates]),
  created_at: Type.String({ description: 'ISO 8601, UTC' }),
  final_at: Maybe,
  voided_at: Maybe,
  void_reason: Maybe,
}
const { tenant_id, tenant_name, month, currency, net, taxes, total, payable } = InvoiceContent.properties

const LineBody = Type.Object({
  ...LineText.properties,
  description: Type.String(),
  quantity_text: Type.Union([Type.String(), Type.Null()], {
    description: 'The quantity in units, rounded to six decimal places, e.g. `1.5 GB`',
  }),
})
type LineBody = Static<typeof LineBody>

/** An invoice without its lines. */
export const InvoiceSummary = Type.Object({
  ...Head,
  tenant_id,
  tenant_name,
  month,
  currency,
  net,
  taxes,
  total,
  payable,
})
export type InvoiceSummary = Static<typeof InvoiceSummary>

export const InvoiceBody = Type.Object({ ...Head, ...InvoiceContent.properties, lines: Type.Array(LineBody) })
export type InvoiceBody = Static<typeof InvoiceBody>

/** A preview of the current month's invoice. It has no id and is not stored. */
export const UpcomingBody = Type.Object({
  state: Type.Literal('upcoming'),
  number: Type.Null(),
  as_of: Type.String({ description: 'Usage of the hours before this is in it; ISO 8601, UTC' }),
  ...InvoiceContent.properties,
  lines: Type.Array(LineBody),
})
export type UpcomingBody = Static<typeof UpcomingBody>

function headOf({ id, number, state, createdAt, finalAt, voidedAt, voidReason }: Invoice) {
  return {
    invoice_id: id,
    number: number ?? null,
    state,
    created_at: createdAt.toISOString(),
    final_at: finalAt?.toISOString() ?? null,
    voided_at: voidedAt?.toISOString() ?? null,
    void_reason: voidReason ?? null,
  }
}

export function toSummary(invoice: Invoice): InvoiceSummary {
  const { tenant_id, tenant_name, month, currency, net, taxes, total, payable } = invoice.content
  return {
    ...headOf(invoice),
    tenant_id,
    ...(tenant_name === undefined ? {} : { tenant_name }),
    month,
    currency,
    net,
    taxes,
    total,
    payable,
  }
}

export function toInvoiceBody(invoice: Invoice): InvoiceBody {
  return { ...headOf(invoice), ...invoice.content, lines: invoice.content.lines.map(toLineBody) }
}

/** Returns the body of a preview. It has no notes, because notes explain how to pay an invoice. */
export function toUpcomingBody({ content, asOf }: Upcoming): UpcomingBody {
  return {
    state: 'upcoming',
    number: null,
    as_of: asOf.toISOString(),
    ...content,
    notes: [],
    lines: content.lines.map(toLineBody),
  }
}

function toLineBody(text: LineText): LineBody {
  const line = readLine(text)
  return { ...text, description: describeLine(line), quantity_text: quantityText(line) ?? null }
}
