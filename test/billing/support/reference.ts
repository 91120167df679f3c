// Computes the cost of a month in a second way, without code of the product: from the text of the prices file, by summing
// up the price of each unit, with fractions instead of prorated bounds.
import type { Amounts } from '#control-plane/usage/hour-bucket.ts'
import { pricesFile } from './prices.ts'

export interface ReferenceUsage {
  hour: Date
  amounts: Amounts
}
export interface ReferencePeriod {
  plan: string
  weakerIsolation?: string
  since: Date
  until: Date
}
/** The unit to which lines of an invoice are rounded, in millionths. */
export const cent = 10_000n

interface Price {
  unit: string
  included?: string
  tiers: { up_to?: string; price: string }[]
}

const amountOf: Record<string, keyof Amounts> = {
  requests: 'requests',
  egress: 'egressBytes',
  documents: 'documentByteSeconds',
  files: 'fileByteSeconds',
  connections: 'connectionMilliseconds',
  realtime_messages: 'realtimeMessages',
  function_invocations: 'functionInvocations',
  function_time: 'functionMilliseconds',
  function_cpu: 'functionCpuMicroseconds',
  function_memory: 'functionMemoryKibMilliseconds',
}
const secondsOf = (at: Date) => BigInt(Math.floor(at.getTime() / 1000))
const min = (a: bigint, b: bigint) => (a < b ? a : b)
const max = (a: bigint, b: bigint) => (a > b ? a : b)
/** Returns the multiple of `step` that is nearest to the quotient. */
const nearest = (above: bigint, below: bigint, step: bigint) => ((above + (below * step) / 2n) / (below * step)) * step
const millionths = (text: string) => {
  const [whole = '0', rest = ''] = text.split('.')
  return BigInt(whole + rest.padEnd(6, '0'))
}

function sizeOf(unit: string, length: bigint): bigint {
  const sizes: Record<string, bigint> = {
    'thousand requests': 1000n,
    'million requests': 10n ** 6n,
    GB: 10n ** 9n,
    TB: 10n ** 12n,
    'GB-month': 10n ** 9n * length,
    'connection-hour': 3_600_000n,
    'million invocations': 10n ** 6n,
    'million messages': 10n ** 6n,
    'GiB-second': 1024n * 1024n * 1000n,
    hour: 3_600_000_000n,
  }
  const size = sizes[unit]
  if (size === undefined) throw new Error(`the reference does not know the unit ${unit}`)
  return size
}

/** Returns the net cost of a month in millionths, with each line rounded to a multiple of `step`. */
export function referenceCost(
  month: Date,
  periods: readonly ReferencePeriod[],
  usage: readonly ReferenceUsage[],
  step: bigint,
): bigint {
  const begin = secondsOf(month)
  const end = secondsOf(new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1)))
  const list = pricesFile.price_lists.findLast(({ from }) => Date.parse(`${from}-01T00:00:00Z`) <= month.getTime())
  const spans = periods
    .map(({ plan, weakerIsolation = '', since, until }) => ({
      plan,
      weakerIsolation,
      from: max(begin, secondsOf(since)),
      to: min(end, secondsOf(until)),
    }))
    .filter(({ from, to }) => to > from)
  let cost = 0n
  for (const [plan, prices] of Object.entries(list?.plans ?? {})) {
    const mine = spans.filter((span) => span.plan === plan)
    const held = mine.reduce((sum, { from, to }) => sum + to - from, 0n)
    if (held === 0n) continue
    let own = 0n
    let minimum = 0n
    for (const model of ['', 'schema-per-tenant']) {
      const { fee, minimum: minimumFee = '0' } = feeOf(prices, model)
      const seconds = mine
        .filter(({ weakerIsolation }) => weakerIsolation === model)
        .reduce((sum, { from, to }) => sum + to - from, 0n)
      own += nearest(millionths(fee) * seconds, end - begin, step)
      minimum += millionths(minimumFee) * seconds
    }
    for (const [resource, price] of Object.entries<Price>(prices.resources)) {
      const name = amountOf[resource]
      if (name === undefined) throw new Error(`the reference does not know ${resource}`)
      const total = [...hourSums(usage, name)].reduce(
        (sum, [hour, amount]) => sum + partOf(BigInt(hour), amount, plan, spans),
        0n,
      )
      own += priceOf(total, price, held, end - begin, step)
    }
    cost += max(own, nearest(minimum, end - begin, step))
  }
  return cost
}

interface Fee {
  fee: string
  minimum?: string
}

function feeOf(prices: Fee & { weaker_isolation?: Record<string, Fee> }, weakerIsolation: string): Fee {
  return weakerIsolation === '' ? prices : (prices.weaker_isolation?.[weakerIsolation] ?? { fee: '0' })
}

function hourSums(usage: readonly ReferenceUsage[], name: keyof Amounts): Map<number, bigint> {
  const sums = new Map<number, bigint>()
  for (const { hour, amounts } of usage)
    sums.set(hour.getTime() / 1000, (sums.get(hour.getTime() / 1000) ?? 0n) + amounts[name])
  return sums
}

/** Returns a plan's part of an hour's amount, which is spread evenly over the seconds that had any plan. */
function partOf(
  hour: bigint,
  amount: bigint,
  plan: string,
  spans: readonly { plan: string; from: bigint; to: bigint }[],
): bigint {
  const inHour = spans.filter(({ from, to }) => from < hour + 3600n && to > hour)
  if (inHour.length === 0) return (spans.findLast(({ to }) => to <= hour) ?? spans[0])?.plan === plan ? amount : 0n
  const covered = (until: bigint) =>
    inHour.reduce((sum, { from, to }) => sum + max(0n, min(to, until) - max(from, hour)), 0n)
  const whole = covered(hour + 3600n)
  const upTo = (until: bigint) => (amount * covered(until)) / whole
  return inHour
    .filter((span) => span.plan === plan)
    .reduce((sum, { from, to }) => sum + upTo(min(to, hour + 3600n)) - upTo(max(from, hour)), 0n)
}

function priceOf(
  total: bigint,
  { unit, included = '0', tiers }: Price,
  held: bigint,
  length: bigint,
  step: bigint,
): bigint {
  const size = sizeOf(unit, length)
  const edge = (units: string) => (millionths(units) * size * held) / (length * 1_000_000n)
  const edges = [
    edge(included),
    ...tiers.map(({ up_to: upTo }) => (upTo === undefined ? max(total, edge(included)) : edge(upTo))),
  ]
  return tiers.reduce((sum, { price }, index) => {
    const inTier = min(total, edges[index + 1] ?? 0n) - min(total, edges[index] ?? 0n)
    return sum + nearest(inTier * millionths(price), size, step)
  }, 0n)
}
