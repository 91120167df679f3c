// A steady rate with bursts as one number: the generic cell rate algorithm. The caller provides the time.
import type { RateLimit } from '@tenantry/contract'

export class RateGate {
  readonly limit: RateLimit
  /** The milliseconds of the rate that one request costs, and those that a whole burst costs. */
  readonly #cost: number
  readonly #room: number
  /** The monotonic time at which the rate has covered all admitted requests. */
  #paidAt = -Infinity

  constructor(limit: RateLimit) {
    this.limit = limit
    this.#cost = 1_000 / limit.per_second
    this.#room = limit.burst * this.#cost
  }

  /**
   * Takes one request.
   * @param now milliseconds, monotonic
   * @returns 0 when the request is admitted; otherwise the milliseconds until one would be
   */
  take(now: number): number {
    const paidAt = Math.max(this.#paidAt, now) + this.#cost
    const over = paidAt - now - this.#room
    // A rounding error must not reject a request.
    if (over > this.#cost / 1_000) return over
    this.#paidAt = paidAt
    return 0
  }

  /** Releases what a request has taken, because it does not count after all. */
  release(): void {
    this.#paidAt -= this.#cost
  }

  /** Returns the milliseconds until a request would be admitted. */
  wait(now: number): number {
    const over = Math.max(this.#paidAt, now) + this.#cost - now - this.#room
    return over > this.#cost / 1_000 ? over : 0
  }

  /** Returns the number of requests that would be admitted at once. */
  remaining(now: number): number {
    return Math.max(0, Math.floor((this.#room - Math.max(0, this.#paidAt - now)) / this.#cost + 0.001))
  }

  /** Returns the milliseconds until a whole burst would be admitted again. */
  resetIn(now: number): number {
    return Math.max(0, this.#paidAt - now)
  }
}
