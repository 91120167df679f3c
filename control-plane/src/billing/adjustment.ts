// Credits and one-time charges that an operator gives a tenant, and the lines that they become. Pure.
import { Type, type Static } from 'typebox'
import type { InvoiceState } from './invoice-state.ts'
import { LineText, type Line } from './line.ts'
import { decimalText, divideToStep, parseDecimal, readDecimalText } from './money.ts'

/** What an invoice has of an adjustment. */
export interface AdjustmentFact {
  id: string
  /** In the operator's words. */
  description: string
  /** Net, in millionths of the currency's unit; below zero is a credit. */
  amount: bigint
  createdAt: Date
}

export interface Adjustment extends AdjustmentFact {
  tenantId: string
  currency: string
  /** The draft or final invoice that it stands on. */
  invoice: { id: string; number: string | undefined; month: Date; state: InvoiceState } | undefined
}

/** As it stands in the invoice that bills it. */
export const AdjustmentBasis = Type.Object({
  adjustment_id: Type.String(),
  description: Type.String(),
  amount: LineText.properties.amount,
  created_at: Type.String({ description: 'ISO 8601, UTC' }),
})
export type AdjustmentBasis = Static<typeof AdjustmentBasis>

/**
 * `"-12.5"` as -12500000 millionths.
 * @returns undefined for what is no decimal number of at most nine digits and six places, and for nothing
 */
export function parseAdjustment(text: string): bigint | undefined {
  const isCredit = text.startsWith('-')
  const size = parseDecimal(isCredit ? text.slice(1) : text)
  if (size === undefined || size === 0n || size >= 10n ** 15n) return undefined
  return isCredit ? -size : size
}

/** Taxed as all of the month is that bills it, whatever it is for. @param step the invoice's smallest amount, in millionths */
export function adjustmentLine(
  { id, description, amount }: AdjustmentFact,
  month: Date,
  taxRate: bigint,
  step: bigint,
): Line {
  return {
    charge: 'adjustment',
    month,
    correction: false,
    plan: undefined,
    isolation: undefined,
    from: undefined,
    to: undefined,
    resource: undefined,
    tier: undefined,
    unit: undefined,
    unitPrice: undefined,
    quantity: undefined,
    amount: divideToStep(amount, 1n, step),
    exact: amount,
    taxRate,
    adjustment: { id, description },
  }
}

export function toAdjustmentBasis({ id, description, amount, createdAt }: AdjustmentFact): AdjustmentBasis {
  return { adjustment_id: id, description, amount: decimalText(amount), created_at: createdAt.toISOString() }
}

export function readAdjustmentBasis({
  adjustment_id: id,
  description,
  amount,
  created_at: createdAt,
}: AdjustmentBasis): AdjustmentFact {
  return { id, description, amount: readDecimalText(amount), createdAt: new Date(createdAt) }
}
