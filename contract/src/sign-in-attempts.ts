// Slows down guesses of keys: after a few failed attempts, a client address must wait longer each time.

/** Failed attempts of an address that cost no wait. */
const freeAttempts = 3
const firstWaitMilliseconds = 2_000
const maxWaitMilliseconds = 300_000
/** Milliseconds without an attempt after which an address is removed. */
const memoryMilliseconds = 3_600_000
/** Maximum number of addresses. The one with the oldest attempt is removed for a new one. */
const maxAddresses = 10_000

interface Failures {
  count: number
  lastAt: number
  /** The time before which another attempt is rejected. */
  waitUntil: number
}

/** The failed attempts to sign in, by client address. */
export class SignInAttempts {
  /** Addresses with failures, in the order of their last attempts. */
  readonly #failures = new Map<string, Failures>()
  readonly #now: () => Date

  constructor(now: () => Date) {
    this.#now = now
  }

  /** Returns the seconds that the address must wait before its next attempt; 0 if it may try now. */
  waitSeconds(address: string): number {
    const failures = this.#failures.get(address)
    if (failures === undefined) return 0
    return Math.max(0, Math.ceil((failures.waitUntil - this.#now().getTime()) / 1000))
  }

  /** Records a failed attempt. The wait doubles with each one. */
  fail(address: string): void {
    const now = this.#now().getTime()
    const before = this.#failures.get(address)
    const count = before === undefined || now - before.lastAt > memoryMilliseconds ? 1 : before.count + 1
    const over = count - freeAttempts
    const wait = over <= 0 ? 0 : Math.min(firstWaitMilliseconds * 2 ** Math.min(over - 1, 20), maxWaitMilliseconds)
    this.#failures.delete(address)
    this.#failures.set(address, { count, lastAt: now, waitUntil: now + wait })
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > maxAddresses && oldest !== undefined) this.#failures.delete(oldest)
  }

  /** Removes the failed attempts of an address that has signed in. */
  succeed(address: string): void {
    this.#failures.delete(address)
  }
}
