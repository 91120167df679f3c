// Decides when failures to reach another part are reported: once, after they have lasted a while, because parts start
// and restart in any order.
const timeoutMilliseconds = 3_000

/** Decides when failures in a row become worth a report: once, when they have lasted three seconds. */
export class Outage {
  #since: number | undefined
  #isReported = false

  /** Records a failure. @param now milliseconds, monotonic @returns whether the outage should be reported now */
  failed(now: number): boolean {
    this.#since ??= now
    if (this.#isReported || now - this.#since < timeoutMilliseconds) return false
    this.#isReported = true
    return true
  }

  /** Ends the outage: the other part was reached. The next failure begins a new one. */
  over(): void {
    this.#since = undefined
    this.#isReported = false
  }
}
