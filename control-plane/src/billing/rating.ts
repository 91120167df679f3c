// Rates a month: computes its lines from usage and plans. Pure: making and verifying an invoice both use it.
import type { PlanPeriod } from '../plans/index.ts'
import type { Amounts } from '../usage/index.ts'
import type { Line } from './line.ts'
import { divideToStep, micro } from './money.ts'
import { monthSeconds, monthText, nextMonth } from '../platform/months.ts'
import { divideAmount, spansOf, secondsByPlan, shareOf, sharesOf, type HourShare, type PlanSpan } from './plan-share.ts'
import type { Fee, PlanPrices, PriceList, ResourcePrice } from './price-list.ts'
import { resourceKind, resources, unitSize, type Resource } from './resources.ts'

export interface MonthToRate {
  /** The month's first instant, UTC. */
  month: Date
  prices: PriceList
  periods: readonly PlanPeriod[]
  /** The usage of the month's hours, in any order. Amounts of the same hour are added up. */
  usage: Iterable<{ hour: Date; amounts: Amounts }>
  /** The smallest amount of a line, in millionths of the currency's unit. */
  step: bigint
}

/**
 * Returns the lines that a month costs (specification, section 4.4). Fees, minimums, included amounts and tiers of a
 * plan that applied for part of the month are reduced to its seconds; quantities add up to those of the hours. Each
 * line is rounded twice from the same value: to `step` and to the millionth.
 * @throws Error when a plan has no prices, or usage is of another month
 */
export function rateMonth({ month, prices, periods, usage, step }: MonthToRate): Line[] {
  const spans = spansOf(month, periods)
  const quantities = quantitiesByPlan(month, spans, usage)
  const lines: Line[] = []
  for (const [plan, seconds] of secondsByPlan(spans)) {
    const planPrices = prices.plans.get(plan)
    if (planPrices === undefined)
      throw new Error(`The price list of ${monthText(month)} has no prices for the plan ${plan}.`)
    const blank = blankLine(month, plan, prices.tax.rate)
    const held = spans.filter((span) => span.plan === plan)
    const own = [
      ...feeLines(blank, held, planPrices, step),
      ...usageLines(blank, planPrices, seconds, quantities.get(plan) ?? new Map(), step),
    ]
    lines.push(...own, ...minimumLines(blank, own, held, planPrices, step))
  }
  const unplanned = quantities.get(undefined)
  if (unplanned !== undefined)
    lines.push(...usageLines(blankLine(month, undefined, prices.tax.rate), undefined, 0n, unplanned, step))
  return lines
}

function blankLine(month: Date, plan: string | undefined, taxRate: bigint): Line {
  return {
    charge: 'fee',
    month,
    correction: false,
    plan,
    isolation: undefined,
    from: undefined,
    to: undefined,
    resource: undefined,
    tier: undefined,
    unit: undefined,
    unitPrice: undefined,
    quantity: undefined,
    amount: 0n,
    exact: 0n,
    taxRate,
    adjustment: undefined,
  }
}

type Quantities = Map<Resource, bigint>

function quantitiesByPlan(
  month: Date,
  spans: readonly PlanSpan[],
  usage: MonthToRate['usage'],
): Map<string | undefined, Quantities> {
  const end = nextMonth(month)
  const byPlan = new Map<string | undefined, Quantities>()
  /**
   * Hours of more than one plan. Each is divided once, as a whole, so that the number of its counts does not matter.
   */
  const divided = new Map<number, { shares: HourShare[]; sums: Quantities }>()
  // Most months have one plan, which every hour belongs to.
  const [only] = spans.length === 1 ? spans : []
  for (const { hour, amounts } of usage) {
    if (hour < month || hour >= end) throw new Error(`Usage of ${hour.toISOString()} is not of ${monthText(month)}.`)
    const shares = only === undefined ? sharesOf(spans, hour) : undefined
    if (shares === undefined || shares.length === 1) {
      addUp(quantitiesOf(byPlan, only?.plan ?? shares?.[0]?.plan), amounts)
      continue
    }
    const whole = divided.get(hour.getTime()) ?? { shares, sums: new Map<Resource, bigint>() }
    divided.set(hour.getTime(), whole)
    addUp(whole.sums, amounts)
  }
  for (const { shares, sums } of divided.values()) {
    for (const [resource, sum] of sums) {
      for (const { plan, amount } of divideAmount(shares, sum)) add(quantitiesOf(byPlan, plan), resource, amount)
    }
  }
  return byPlan
}

function quantitiesOf(byPlan: Map<string | undefined, Quantities>, plan: string | undefined): Quantities {
  const quantities = byPlan.get(plan) ?? new Map<Resource, bigint>()
  byPlan.set(plan, quantities)
  return quantities
}

function addUp(sums: Quantities, amounts: Amounts): void {
  for (const resource of resources) add(sums, resource, resourceKind(resource).amount(amounts))
}

function add(sums: Quantities, resource: Resource, amount: bigint): void {
  if (amount !== 0n) sums.set(resource, (sums.get(resource) ?? 0n) + amount)
}

/**
 * Returns the plan's fee for an isolation model. A model weaker than the plan's costs only what the price list names
 * for it.
 */
function feeOf(prices: PlanPrices, weakerIsolation: string | undefined): Fee {
  if (weakerIsolation === undefined) return prices
  return prices.weakerIsolation.get(weakerIsolation) ?? { fee: 0n, minimum: 0n }
}

/**
 * Returns the fee of each period. Sums are rounded along the plan's seconds, so that a whole month costs exactly the
 * fee, however it is divided.
 */
function feeLines(blank: Line, spans: readonly PlanSpan[], prices: PlanPrices, step: bigint): Line[] {
  const sums = new Map<string | undefined, { seconds: bigint; amount: bigint; exact: bigint }>()
  return spans.map(({ from, to, weakerIsolation }) => {
    const { fee } = feeOf(prices, weakerIsolation)
    const before = sums.get(weakerIsolation) ?? { seconds: 0n, amount: 0n, exact: 0n }
    const seconds = before.seconds + BigInt(to - from)
    const cost = (smallest: bigint) => divideToStep(fee * seconds, monthSeconds(blank.month), smallest)
    const sum = { seconds, amount: cost(step), exact: cost(1n) }
    sums.set(weakerIsolation, sum)
    const period = { from: new Date(from * 1000), to: new Date(to * 1000) }
    return {
      ...blank,
      isolation: weakerIsolation,
      ...period,
      amount: sum.amount - before.amount,
      exact: sum.exact - before.exact,
    }
  })
}

/**
 * Returns the line that raises a plan's other lines to its minimum: the rounded amounts and the exact ones separately.
 */
function minimumLines(
  blank: Line,
  own: readonly Line[],
  spans: readonly PlanSpan[],
  prices: PlanPrices,
  step: bigint,
): Line[] {
  const minimum = spans.reduce(
    (sum, { from, to, weakerIsolation }) => sum + feeOf(prices, weakerIsolation).minimum * BigInt(to - from),
    0n,
  )
  const short = (of: 'amount' | 'exact', smallest: bigint) => {
    const missing =
      divideToStep(minimum, monthSeconds(blank.month), smallest) - own.reduce((sum, line) => sum + line[of], 0n)
    return missing > 0n ? missing : 0n
  }
  const line = { ...blank, charge: 'minimum' as const, amount: short('amount', step), exact: short('exact', 1n) }
  return line.amount > 0n || line.exact > 0n ? [line] : []
}

function usageLines(
  blank: Line,
  prices: PlanPrices | undefined,
  seconds: bigint,
  quantities: ReadonlyMap<Resource, bigint>,
  step: bigint,
): Line[] {
  return resources.flatMap((resource) => {
    const quantity = quantities.get(resource) ?? 0n
    if (quantity === 0n) return []
    const price = prices?.resources.get(resource)
    const line = { ...blank, charge: 'usage' as const, resource }
    if (price === undefined) return [{ ...line, tier: 0, quantity }]
    return tierLines(
      { ...line, unit: price.unit },
      price,
      unitSize(resource, price.unit, monthSeconds(blank.month)),
      seconds,
      quantity,
      step,
    )
  })
}

function tierLines(
  line: Line,
  price: ResourcePrice,
  size: bigint,
  seconds: bigint,
  quantity: bigint,
  step: bigint,
): Line[] {
  /** Converts millionths of units in a whole month into base amounts in the plan's part of it. */
  const bound = (units: bigint) => shareOf(units * size, seconds, line.month) / micro
  const steps = [
    { upTo: bound(price.included), price: undefined },
    ...price.tiers.map((tier) => ({ upTo: tier.upTo === undefined ? quantity : bound(tier.upTo), price: tier.price })),
  ]
  let below = 0n
  return steps.flatMap(({ upTo, price: unitPrice }, tier) => {
    const part = (upTo < quantity ? upTo : quantity) - below
    if (part <= 0n) return []
    below += part
    if (unitPrice === undefined) return [{ ...line, tier, quantity: part }]
    const cost = (smallest: bigint) => divideToStep(part * unitPrice, size, smallest)
    return [{ ...line, tier, quantity: part, unitPrice, amount: cost(step), exact: cost(1n) }]
  })
}
