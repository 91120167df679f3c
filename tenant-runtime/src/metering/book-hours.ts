// A home's books → what was used in each hour, checked against what the runtime has seen itself. Pure. Amounts are whole numbers;
// hours are their starts in milliseconds since 1970.
import { hourMilliseconds } from '@tenantry/contract'

export interface RunAmounts {
  functionInvocations: bigint
  functionMilliseconds: bigint
  functionCpuMicroseconds: bigint
  functionMemoryKibMilliseconds: bigint
}

/** A value of the time integral: microseconds since 1970, bytes times microseconds. */
export interface Point {
  at: bigint
  value: bigint
}

export const noRuns: RunAmounts = {
  functionInvocations: 0n,
  functionMilliseconds: 0n,
  functionCpuMicroseconds: 0n,
  functionMemoryKibMilliseconds: 0n,
}

export function plusRuns(one: RunAmounts, other: RunAmounts): RunAmounts {
  return combined(one, other, (a, b) => a + b)
}

/** Never below nothing. */
export function minusRuns(one: RunAmounts, other: RunAmounts): RunAmounts {
  return combined(one, other, (a, b) => greater(a - b, 0n))
}

function combined(one: RunAmounts, other: RunAmounts, of: (a: bigint, b: bigint) => bigint): RunAmounts {
  return {
    functionInvocations: of(one.functionInvocations, other.functionInvocations),
    functionMilliseconds: of(one.functionMilliseconds, other.functionMilliseconds),
    functionCpuMicroseconds: of(one.functionCpuMicroseconds, other.functionCpuMicroseconds),
    functionMemoryKibMilliseconds: of(one.functionMemoryKibMilliseconds, other.functionMemoryKibMilliseconds),
  }
}

const greater = (a: bigint, b: bigint) => (a > b ? a : b)

/**
 * Byte-seconds of one hour, so far. The hours' whole numbers add up to the integral's.
 * @param points in the order of time, the first where the books began, the last now; between two the integral grows evenly
 */
export function byteSeconds(points: readonly Point[], hour: number): bigint {
  const from = BigInt(hour) * 1000n
  const amount =
    valueAt(points, from + BigInt(hourMilliseconds) * 1000n) / 1_000_000n - valueAt(points, from) / 1_000_000n
  return greater(amount, 0n)
}

function valueAt(points: readonly Point[], at: bigint): bigint {
  const after = points.findIndex((point) => point.at >= at)
  const [left, right] = after < 0 ? [points.at(-1), undefined] : [points[after - 1], points[after]]
  if (left === undefined) return right === undefined || right.at > at ? 0n : right.value
  if (right === undefined) return left.value
  return left.value + ((right.value - left.value) * (at - left.at)) / (right.at - left.at)
}

/**
 * Records as the runtime has seen them be written, where some are gone: the greater counts. Where clocks differ a little, runs
 * next to an hour's edge are in another hour of the records: all together they are there, or something is gone.
 * @param from hour from which on `records` are; what was seen in it may be in the hour before
 */
export function checkedRuns(
  records: ReadonlyMap<number, RunAmounts>,
  seen: ReadonlyMap<number, RunAmounts>,
  from: number,
): ReadonlyMap<number, RunAmounts> {
  const recent = new Map([...seen].filter(([hour]) => hour > from))
  const sum = (hours: ReadonlyMap<number, RunAmounts>) => [...hours.values()].reduce(plusRuns, noRuns)
  const [recorded, witnessed] = [sum(records), sum(recent)]
  const names = Object.keys(noRuns) as (keyof RunAmounts)[]
  if (names.every((name) => recorded[name] >= witnessed[name])) return records
  const hours = new Set([...records.keys(), ...recent.keys()])
  return new Map(
    [...hours].map((hour) => [hour, combined(records.get(hour) ?? noRuns, recent.get(hour) ?? noRuns, greater)]),
  )
}
