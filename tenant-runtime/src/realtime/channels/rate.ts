// Limits how often something happens: a number per second, with a burst of the same number. Pure.

export class Rate {
  readonly #now: () => number
  #perSecond: number
  #tokens: number
  #at: number

  /** @param now returns monotonic milliseconds */
  constructor(perSecond: number, now: () => number) {
    this.#perSecond = perSecond
    this.#now = now
    this.#tokens = perSecond
    this.#at = -Infinity
  }

  get perSecond(): number {
    return this.#perSecond
  }

  set perSecond(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Whether the whole burst is available. */
  get isFull(): boolean {
    return this.#now() - this.#at >= 1_000
  }

  /** Whether it may happen `count` times more now. */
  take(count = 1): boolean {
    const now = this.#now()
    this.#tokens = Math.min(this.#perSecond, this.#tokens + (Math.min(1_000, now - this.#at) / 1_000) * this.#perSecond)
    this.#at = now
    if (this.#tokens < count) return false
    this.#tokens -= count
    return true
  }
}
