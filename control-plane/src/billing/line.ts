// The lines of an invoice, as values and as the texts that are kept and shown.
import { Type, type Static } from 'typebox'
import { decimalText, exactPlaces, readDecimalText } from './money.ts'
import { monthText, parseMonth } from '../platform/months.ts'
import { isResource, type Resource } from './resources.ts'

/**
 * `fee`: the plan's, for one period of it. `usage`: one tier of one resource of one plan. `minimum`: what the plan's
 * fee and usage are short of. `adjustment`: a credit or one-time charge that an operator gave.
 */
type Charge = 'fee' | 'usage' | 'minimum' | 'adjustment'

/** One amount of an invoice. Amounts are millionths of the currency's unit, quantities the resource's base amounts. */
export interface Line {
  charge: Charge
  /** First instant of the month that it is for. */
  month: Date
  /** It makes good what earlier invoices of that month did not know, and may be negative. */
  correction: boolean
  /** Undefined for usage while the tenant had no plan, which costs nothing. */
  plan: string | undefined
  /** Of a fee for a tenant whose isolation model is weaker than the plan's: that model. */
  isolation: string | undefined
  /** Of a fee: the period, in whole seconds. */
  from: Date | undefined
  to: Date | undefined
  resource: Resource | undefined
  /** 0 is what costs nothing (included, or not priced by the plan); tiers count from 1. */
  tier: number | undefined
  unit: string | undefined
  unitPrice: bigint | undefined
  quantity: bigint | undefined
  /** Rounded as the invoice's lines are. */
  amount: bigint
  /** To the millionth. */
  exact: bigint
  /** Millionths. */
  taxRate: bigint
  /** Of an adjustment alone: which one, in the operator's words. */
  adjustment: { id: string; description: string } | undefined
}

const Integer = Type.String({ pattern: '^-?[0-9]{1,30}$' })
const Decimal = Type.String({ pattern: '^-?[0-9]{1,30}\\.[0-9]{6}$' })
const MaybeText = Type.Union([Type.String(), Type.Null()])

/** A line as it is kept, and as the API shows it. Quantities and amounts are texts: they may be beyond what JSON's numbers hold. */
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
    Type.String({ description: "Of a fee alone: the tenant's isolation model, where it is weaker than the plan's" }),
  ),
  adjustment_id: Type.Optional(Type.String({ description: 'Of an adjustment alone' })),
  adjustment_text: Type.Optional(Type.String({ description: "Of an adjustment alone, in the operator's words" })),
})
export type LineText = Static<typeof LineText>

/** @param slots of the amounts; six are those of invoices whose lines are not rounded */
export function lineText(line: Line, slots: number): LineText {
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
    ...(slots === exactPlaces ? {} : { exact_amount: decimalText(line.exact) }),
    tax_rate: decimalText(line.taxRate),
    ...(line.isolation === undefined ? {} : { isolation: line.isolation }),
    ...(line.adjustment === undefined
      ? {}
      : { adjustment_id: line.adjustment.id, adjustment_text: line.adjustment.description }),
  }
}

/** @throws Error for a text that `lineText` does not write */
export function readLine(text: LineText): Line {
  const month = parseMonth(text.month)
  if (month === undefined) throw new Error(`"${text.month}" is no month`)
  if (text.resource !== null && !isResource(text.resource)) throw new Error(`there is no resource "${text.resource}"`)
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

/** What a line is for: lines of the same place are the same charge, found by another count. */
export function positionOf(line: Line): string {
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
