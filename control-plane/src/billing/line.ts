// The lines of an invoice: their values, and the texts that are stored and returned.
import { Type, type Static } from 'typebox'
import { decimalText, exactDecimalPlaces, readDecimalText } from './money.ts'
import { monthText, parseMonth } from '../platform/months.ts'
import { isResource, type Resource } from './resources.ts'

/**
 * The kind of a line. `fee`: the plan's, for one period of it. `usage`: one tier of one resource of one plan.
 * `minimum`: the amount by which the plan's fee and usage are below its minimum. `adjustment`: a credit or one-time
 * charge that an operator gave.
 */
type Charge = 'fee' | 'usage' | 'minimum' | 'adjustment'

/** One amount of an invoice. Amounts are millionths of the currency's unit, quantities the resource's base amounts. */
export interface Line {
  charge: Charge
  /** The first instant of the month that the line is for. */
  month: Date
  /** Whether the line corrects earlier invoices of that month. Its amount may then be negative. */
  correction: boolean
  /** The plan; undefined for usage while the tenant had no plan, which costs nothing. */
  plan: string | undefined
  /** The tenant's isolation model, on a fee for a tenant whose model is weaker than the plan's. */
  isolation: string | undefined
  /** The start of a fee's period, in whole seconds. `to` is its end. */
  from: Date | undefined
  to: Date | undefined
  resource: Resource | undefined
  /** The price tier, from 1. Tier 0 costs nothing: its units are included or not priced by the plan. */
  tier: number | undefined
  unit: string | undefined
  unitPrice: bigint | undefined
  quantity: bigint | undefined
  /** The amount, rounded as the invoice's lines are. */
  amount: bigint
  /** The amount to the millionth. */
  exact: bigint
  /** The tax rate in millionths. */
  taxRate: bigint
  /** The adjustment and the operator's description of it, on a line of an adjustment. */
  adjustment: { id: string; description: string } | undefined
}

const Integer = Type.String({ pattern: '^-?[0-9]{1,30}$' })
const Decimal = Type.String({ pattern: '^-?[0-9]{1,30}\\.[0-9]{6}$' })
const MaybeText = Type.Union([Type.String(), Type.Null()])

/**
 * A line as it is stored and returned. Quantities and amounts are texts, because JSON's numbers are too small for some.
 */
export const LineText = Type.Object({
  charge: Type.Union([Type.Literal('fee'), Type.Literal('usage'), Type.Literal('minimum'), Type.Literal('adjustment')]),
  month: Type.String({ description: 'YYYY-MM' }),
  correction: Type.Boolean(),
  plan: MaybeText,
  from: MaybeText,
  to: MaybeText,
  resource: MaybeText,
  tier: Type.Union([Type.Integer(), Type.Null()]),
  unit: MaybeText,
  unit_price: Type.Union([Decimal, Type.Null()]),
  quantity: Type.Union([Integer, Type.Null()], { description: "In the resource's base amount, e.g. bytes" }),
  amount: Decimal,
  exact_amount: Type.Optional(
    Type.Unsafe<string>({
      ...Decimal,
      description: 'The amount before it was rounded; absent from invoices whose lines are not rounded',
    }),
  ),
  tax_rate: Decimal,
  isolation: Type.Optional(
    Type.String({ description: "The tenant's isolation model, on fees where it is weaker than the plan's" }),
  ),
  adjustment_id: Type.Optional(Type.String({ description: 'On lines of adjustments only' })),
  adjustment_text: Type.Optional(
    Type.String({ description: "The operator's description, on lines of adjustments only" }),
  ),
})
export type LineText = Static<typeof LineText>

/**
 * Writes a line as text.
 * @param decimalPlaces the amounts' decimal places; six on invoices whose lines are not rounded
 */
export function lineText(line: Line, decimalPlaces: number): LineText {
  return {
    charge: line.charge,
    month: monthText(line.month),
    correction: line.correction,
    plan: line.plan ?? null,
    from: line.from?.toISOString() ?? null,
    to: line.to?.toISOString() ?? null,
    resource: line.resource ?? null,
    tier: line.tier ?? null,
    unit: line.unit ?? null,
    unit_price: line.unitPrice === undefined ? null : decimalText(line.unitPrice),
    quantity: line.quantity === undefined ? null : String(line.quantity),
    amount: decimalText(line.amount),
    ...(decimalPlaces === exactDecimalPlaces ? {} : { exact_amount: decimalText(line.exact) }),
    tax_rate: decimalText(line.taxRate),
    ...(line.isolation === undefined ? {} : { isolation: line.isolation }),
    ...(line.adjustment === undefined
      ? {}
      : { adjustment_id: line.adjustment.id, adjustment_text: line.adjustment.description }),
  }
}

/**
 * Reads a line's text.
 * @throws Error for a text that `lineText` does not write
 */
export function readLine(text: LineText): Line {
  const month = parseMonth(text.month)
  if (month === undefined) throw new Error(`Invalid month "${text.month}". It must be YYYY-MM.`)
  if (text.resource !== null && !isResource(text.resource)) throw new Error(`Unknown resource "${text.resource}".`)
  return {
    charge: text.charge,
    month,
    correction: text.correction,
    plan: text.plan ?? undefined,
    isolation: text.isolation,
    from: text.from === null ? undefined : new Date(text.from),
    to: text.to === null ? undefined : new Date(text.to),
    resource: text.resource ?? undefined,
    tier: text.tier ?? undefined,
    unit: text.unit ?? undefined,
    unitPrice: text.unit_price === null ? undefined : readDecimalText(text.unit_price),
    quantity: text.quantity === null ? undefined : BigInt(text.quantity),
    amount: readDecimalText(text.amount),
    exact: readDecimalText(text.exact_amount ?? text.amount),
    taxRate: readDecimalText(text.tax_rate),
    adjustment:
      text.adjustment_id === undefined
        ? undefined
        : { id: text.adjustment_id, description: text.adjustment_text ?? '' },
  }
}

/** Returns a key of what a line charges for. Lines with the same key are the same charge with different quantities. */
export function chargeKey(line: Line): string {
  return JSON.stringify([
    monthText(line.month),
    line.charge,
    line.plan ?? null,
    line.isolation ?? null,
    line.from?.getTime() ?? null,
    line.to?.getTime() ?? null,
    line.resource ?? null,
    line.tier ?? null,
    line.unit ?? null,
    line.unitPrice === undefined ? null : String(line.unitPrice),
    String(line.taxRate),
  ])
}
