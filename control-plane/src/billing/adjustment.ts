// Credits and one-time charges that an operator gives a tenant, and their lines on invoices. Pure.
import { Type, type Static } from 'typebox'
import type { InvoiceState } from './invoice-state.ts'
import { LineText, type Line } from './line.ts'
import { decimalText, divideToStep, parseDecimal, readDecimalText } from './money.ts'

/** The part of an adjustment that its invoice contains. */
export interface AdjustmentFact {
  id: string
  /** The operator's description. */
  description: string
  /** The net amount in millionths of the currency's unit; a credit is negative. */
  amount: bigint
  createdAt: Date
}

export interface Adjustment extends AdjustmentFact {
  tenantId: string
  currency: string
  /** The draft or final invoice that the adjustment is on. */
  invoice: { id: string; number: string | undefined; month: Date; state: InvoiceState } | undefined
}

/** An adjustment as the invoice that bills it stores it. */
export const AdjustmentBasis = Type.Object({
  adjustment_id: Type.String(),
  description: Type.String(),
  amount: LineText.properties.amount,
  created_at: Type.String({ description: 'ISO 8601, UTC' }),
})
export type AdjustmentBasis = Static<typeof AdjustmentBasis>

/**
 * Reads a signed decimal text: `"-12.5"` is -12500000 millionths.
 * @returns undefined unless the text is a decimal number other than 0 with at most nine digits and six decimal places
 */
export function parseAdjustment(text: string): bigint | undefined {
  const isCredit = text.startsWith('-')
  const size = parseDecimal(isCredit ? text.slice(1) : text)
  if (size === undefined || size === 0n || size >= 10n ** 15n) return undefined
  return isCredit ? -size : size
}

/**
 * Returns the invoice line of an adjustment. It is taxed at the rate of the month that bills it.
 * @param step the invoice's smallest amount, in millionths
 */
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
