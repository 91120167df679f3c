// When a failure to reach another part is worth telling: once, when it has lasted a while. Parts start in any order, and
// restart.
const patienceMilliseconds = 3_000

export class Outage {
  #since: number | undefined
  #isTold = false

  /** @param now milliseconds, monotonic @returns whether it should be told now */
  failed(now: number): boolean {
    this.#since ??= now
    if (this.#isTold || now - this.#since < patienceMilliseconds) return false
    this.#isTold = true
    return true
  }

  over(): void {
    this.#since = undefined
    this.#isTold = false
  }
}
