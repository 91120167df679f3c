// A tenant's consecutive failures: when it is retried, and from when on it counts as failed. Pure.

export interface FailureSeries {
  count: number
  /** Time of the first failure. */
  since: Date
  /** Region whose engine was unreachable at the last failure, which reveals nothing of the tenant. */
  outageOf: string | undefined
}

const firstDelayMilliseconds = 100
const maxDelayMilliseconds = 30_000
const manyFailures = 3
/** Time after which transient causes, for example the replacement of a gateway, have passed. */
const failedAfterMilliseconds = 30_000

export function failedAgain(series: FailureSeries | undefined, at: Date, outageOf: string | undefined): FailureSeries {
  return { count: (series?.count ?? 0) + 1, since: series?.since ?? at, outageOf }
}

/** Whether a tenant fails repeatedly, so that others go first. */
export function keepsFailing(series: FailureSeries | undefined): boolean {
  return series !== undefined && series.outageOf === undefined && series.count >= manyFailures
}

/** Whether a tenant has failed so often and for so long that it counts as failed. */
export function hasFailed(series: FailureSeries, at: Date): boolean {
  return series.count >= manyFailures && remainingMilliseconds(series, at) <= 0
}

/**
 * Returns the delay, which doubles with each failure, times a random factor of 0.5 to 1.5, so that tenants that failed
 * together are not retried together. It ends no later than the time at which the tenant may count as failed.
 * @param random uniform in [0, 1)
 * @returns milliseconds
 */
export function retryAfter(series: FailureSeries, at: Date, random: number): number {
  const delay = Math.min(firstDelayMilliseconds * 2 ** (series.count - 1), maxDelayMilliseconds) * (0.5 + random)
  const remaining = remainingMilliseconds(series, at)
  return remaining > 0 ? Math.min(delay, remaining) : delay
}

function remainingMilliseconds({ since }: FailureSeries, at: Date): number {
  return since.getTime() + failedAfterMilliseconds - at.getTime()
}
