// A tenant's failures in a row: when it is tried again, and from when on it is called failed. Pure.

export interface FailureSeries {
  count: number
  /** When the first of them was. */
  since: Date
  /** The region whose engine could not be reached the last time: that says nothing of the tenant. */
  outageOf: string | undefined
}

const firstDelay = 100
const maxDelay = 30_000
const manyFailures = 3
/** What passes by itself, e.g. a gateway that is being replaced, is over by then. */
const failedAfterMilliseconds = 30_000

export function failedAgain(series: FailureSeries | undefined, at: Date, outageOf: string | undefined): FailureSeries {
  return { count: (series?.count ?? 0) + 1, since: series?.since ?? at, outageOf }
}

/** It does not get well at once: others go first. */
export function keepsFailing(series: FailureSeries | undefined): boolean {
  return series !== undefined && series.outageOf === undefined && series.count >= manyFailures
}

/** Nobody can say any more that it will be well in a moment. */
export function hasFailed(series: FailureSeries, at: Date): boolean {
  return series.count >= manyFailures && millisecondsLeft(series, at) <= 0
}

/**
 * Doubles with each failure, times a half to one and a half: tenants that failed together do not come back together. Not
 * past the time at which it may be called failed.
 * @param random uniform in [0, 1) @returns milliseconds
 */
export function retryAfter(series: FailureSeries, at: Date, random: number): number {
  const delay = Math.min(firstDelay * 2 ** (series.count - 1), maxDelay) * (0.5 + random)
  const left = millisecondsLeft(series, at)
  return left > 0 ? Math.min(delay, left) : delay
}

function millisecondsLeft({ since }: FailureSeries, at: Date): number {
  return since.getTime() + failedAfterMilliseconds - at.getTime()
}
