// Computes the usage of each hour from a home's counters, and checks it against the usage that the runtime observed. Pure.
// Amounts are whole numbers; hours are their starts in milliseconds since 1970.
import { hourMilliseconds } from '@tenantry/contract'

export interface RunAmounts {
  functionInvocations: bigint
  functionMilliseconds: bigint
  functionCpuMicroseconds: bigint
  functionMemoryKibMilliseconds: bigint
  /** Bytes that the runs sent with `http_fetch`. */
  functionEgressBytes: bigint
}

/** A value of the time integral: `at` in microseconds since 1970, `value` in bytes times microseconds. */
export interface Point {
  at: bigint
  value: bigint
}

export const noRuns: RunAmounts = {
  functionInvocations: 0n,
  functionMilliseconds: 0n,
  functionCpuMicroseconds: 0n,
  functionMemoryKibMilliseconds: 0n,
  functionEgressBytes: 0n,
}

export function plusRuns(one: RunAmounts, other: RunAmounts): RunAmounts {
  return combine(one, other, (a, b) => a + b)
}

/** Subtracts amounts, with 0 as the minimum. */
export function minusRuns(one: RunAmounts, other: RunAmounts): RunAmounts {
  return combine(one, other, (a, b) => maxOf(a - b, 0n))
}

function combine(one: RunAmounts, other: RunAmounts, of: (a: bigint, b: bigint) => bigint): RunAmounts {
  return {
    functionInvocations: of(one.functionInvocations, other.functionInvocations),
    functionMilliseconds: of(one.functionMilliseconds, other.functionMilliseconds),
    functionCpuMicroseconds: of(one.functionCpuMicroseconds, other.functionCpuMicroseconds),
    functionMemoryKibMilliseconds: of(one.functionMemoryKibMilliseconds, other.functionMemoryKibMilliseconds),
    functionEgressBytes: of(one.functionEgressBytes, other.functionEgressBytes),
  }
}

const maxOf = (a: bigint, b: bigint) => (a > b ? a : b)

/**
 * Returns the byte-seconds of one hour until now. The whole numbers of all hours sum up to those of the integral.
 * @param points in the order of time, from the beginning of the counters until now; the integral grows evenly between two
 * of them
 */
export function byteSeconds(points: readonly Point[], hour: number): bigint {
  const from = BigInt(hour) * 1000n
  const amount =
    valueAt(points, from + BigInt(hourMilliseconds) * 1000n) / 1_000_000n - valueAt(points, from) / 1_000_000n
  return maxOf(amount, 0n)
}

function valueAt(points: readonly Point[], at: bigint): bigint {
  const after = points.findIndex((point) => point.at >= at)
  const [left, right] = after < 0 ? [points.at(-1), undefined] : [points[after - 1], points[after]]
  if (left === undefined) return right === undefined || right.at > at ? 0n : right.value
  if (right === undefined) return left.value
  return left.value + ((right.value - left.value) * (at - left.at)) / (right.at - left.at)
}

/**
 * Checks the stored runs against the observed ones, because a tenant can delete stored runs: the greater amounts count.
 * Clocks may differ a little, so runs near an hour's end may be stored in the next hour. So hours are compared only when
 * the sums differ.
 * @param from first hour of `records`; runs observed in it may be stored in the hour before
 */
export function checkedRuns(
  records: ReadonlyMap<number, RunAmounts>,
  observed: ReadonlyMap<number, RunAmounts>,
  from: number,
): ReadonlyMap<number, RunAmounts> {
  const recent = new Map([...observed].filter(([hour]) => hour > from))
  const sum = (hours: ReadonlyMap<number, RunAmounts>) => [...hours.values()].reduce(plusRuns, noRuns)
  const [storedSum, observedSum] = [sum(records), sum(recent)]
  const names = Object.keys(noRuns) as (keyof RunAmounts)[]
  if (names.every((name) => storedSum[name] >= observedSum[name])) return records
  const hours = new Set([...records.keys(), ...recent.keys()])
  return new Map(
    [...hours].map((hour) => [hour, combine(records.get(hour) ?? noRuns, recent.get(hour) ?? noRuns, maxOf)]),
  )
}
