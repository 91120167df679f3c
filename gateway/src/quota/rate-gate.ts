// A steady rate with room for bursts, as one number: the generic cell rate algorithm. No clock of its own.
import type { RateLimit } from '@tenantry/contract'

export class RateGate {
  readonly limit: RateLimit
  /** Milliseconds that one request takes of the rate, and that a whole burst does. */
  readonly #cost: number
  readonly #room: number
  /** When all that was let in will have been paid for. */
  #paidAt = -Infinity

  constructor(limit: RateLimit) {
    this.limit = limit
    this.#cost = 1_000 / limit.per_second
    this.#room = limit.burst * this.#cost
  }

  /**
   * @param now milliseconds, monotonic
   * @returns 0 when the request is let in; else the milliseconds until one would be
   */
  take(now: number): number {
    const paidAt = Math.max(this.#paidAt, now) + this.#cost
    const over = paidAt - now - this.#room
    // A rounding error is no request too many.
    if (over > this.#cost / 1_000) return over
    this.#paidAt = paidAt
    return 0
  }

  /** Requests that would be let in at once. */
  remaining(now: number): number {
    return Math.max(0, Math.floor((this.#room - Math.max(0, this.#paidAt - now)) / this.#cost + 0.001))
  }

  /** Milliseconds until a whole burst would be let in again. */
  resetIn(now: number): number {
    return Math.max(0, this.#paidAt - now)
  }
}
