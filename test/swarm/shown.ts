// Figures of repeated measurements, for comments of tests.

import type { ReadPause } from '../clusters/http-client.ts'

/** The target for pauses of reads. */
const targetMilliseconds = 5_000

/** Returns the requests of a pause that exceeds the target, one a line. */
export function courseOf({ milliseconds, course }: ReadPause): string[] {
  return milliseconds > targetMilliseconds ? [`reads paused for ${milliseconds} ms:`, ...course] : []
}

/** Returns the median, the 95th percentile and the maximum. */
export function shown(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
  return `median ${at(0.5)}, p95 ${at(0.95)}, at most ${at(1)}`
}
