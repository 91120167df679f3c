// Which clients or tenants the log has named within the last minute, so that none of them fills it.

const reportMilliseconds = 60_000

/** Limits the reports about each key, such as an address, to one in a minute. */
export class LimitedReports<Key> {
  readonly #elapsed: () => number
  /** The time of the last report of each key, oldest first. */
  readonly #reportedAt = new Map<Key, number>()

  /** Creates the limit. `elapsed` returns monotonic milliseconds. */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /** Whether the key is to be reported now. */
  isDue(key: Key): boolean {
    const now = this.#elapsed()
    for (const [other, at] of this.#reportedAt) {
      if (now - at < reportMilliseconds) break
      this.#reportedAt.delete(other)
    }
    if (this.#reportedAt.has(key)) return false
    this.#reportedAt.set(key, now)
    return true
  }
}
