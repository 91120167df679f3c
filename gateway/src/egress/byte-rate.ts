// A rate of bytes with a burst: the generic cell rate algorithm. Every chunk passes, and its sender then waits. Pure.

/** The rate of bytes of one tenant. The caller provides the time. */
export class ByteRate {
  readonly #bytesPerMillisecond: number
  readonly #burstMilliseconds: number
  /** The monotonic time at which the rate has covered all bytes that have passed. */
  #paidAt = -Infinity

  constructor({ bytesPerSecond, burstBytes }: { bytesPerSecond: number; burstBytes: number }) {
    this.#bytesPerMillisecond = bytesPerSecond / 1_000
    this.#burstMilliseconds = burstBytes / this.#bytesPerMillisecond
  }

  /**
   * Counts a chunk that passes.
   * @param now milliseconds, monotonic
   * @returns the milliseconds for which its connection waits before the next chunk
   */
  add(bytes: number, now: number): number {
    this.#paidAt = Math.max(this.#paidAt, now) + bytes / this.#bytesPerMillisecond
    return Math.max(0, this.#paidAt - now - this.#burstMilliseconds)
  }

  /** Whether the whole burst is available again. */
  isIdle(now: number): boolean {
    return this.#paidAt <= now
  }
}
