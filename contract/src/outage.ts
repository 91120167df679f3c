// When a failure to reach another part is worth telling: once, when it has lasted a while. Parts start in any order, and
// restart.
const timeoutMilliseconds = 3_000

/** Decides when failures in a row become worth a report: once, when they have lasted three seconds. */
export class Outage {
  #since: number | undefined
  #isReported = false

  /** @param now milliseconds, monotonic @returns whether it should be told now */
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
