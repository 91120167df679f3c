// A budget of bytes that this process holds for all requests together, with shares. The bound is on memory: a holder
// reserves bytes before it buffers them. When they do not fit, it is rejected, at once or after a limited wait.

/** A part of the budget, for example that of one tenant. */
export interface Share {
  /** The kind of the share, which rejections name. */
  readonly name: string
  /** The owner of the share. */
  readonly key: string
  readonly maxBytes: number
}

/** The name of the whole budget, of which all holders are a part. */
export const whole = 'total'

/** The bytes that each tenant may hold even while others use the whole budget. */
export const alwaysAllowedBytes = 256 * 1024

/** Takes bytes if there is room. Returns whether it has taken them. */
type Try = () => boolean

export class ByteBudget {
  readonly maxBytes: number
  /** The number of rejected reservations, by the name of the share that had no room. */
  readonly rejections = new Map<string, number>()
  readonly #used = new Map<string, number>()
  readonly #waiting = new Set<Try>()
  #isRetryScheduled = false
  #total = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  get used(): number {
    return this.#total
  }

  /** Opens a reservation of no bytes. */
  open(shares: readonly Share[]): Reservation {
    return new Reservation(this, shares)
  }

  /** Returns the share that has no room for bytes of a holder of `held` bytes, or undefined. Used by `Reservation`. */
  shareWithoutRoom(bytes: number, held: number, shares: readonly Share[]): Share | undefined {
    // All of it may be used for the only holder, even if the budget is small.
    const isOnly = this.#total === held
    const isSmall = shares.some((share) => share.name === 'tenant' && this.#usedOf(share) + bytes <= alwaysAllowedBytes)
    if (isOnly || isSmall) return undefined
    const remaining = this.maxBytes - this.#total - bytes
    for (const share of shares) {
      const used = this.#usedOf(share)
      if (used + bytes > share.maxBytes && used !== held) return share
      // The holders of a share leave as much as they use, so that no number of tenants uses up the budget.
      if (used + bytes > remaining) return this.#whole
    }
    return remaining < 0 ? this.#whole : undefined
  }

  /** Returns the share, apart from the whole, that is used up, or undefined. */
  fullShare(shares: readonly Share[]): Share | undefined {
    return shares.find((share) => this.#usedOf(share) >= share.maxBytes)
  }

  /** Counts a rejection because of a share. */
  reject({ name }: Share): void {
    this.rejections.set(name, (this.rejections.get(name) ?? 0) + 1)
  }

  /** Adds bytes without a check. A negative number returns them. Used by `Reservation`. */
  add(bytes: number, shares: readonly Share[]): void {
    this.#total += bytes
    for (const share of shares) {
      const key = keyOf(share)
      const used = (this.#used.get(key) ?? 0) + bytes
      if (used === 0) this.#used.delete(key)
      else this.#used.set(key, used)
    }
    if (bytes < 0) this.#scheduleRetry()
  }

  /**
   * Waits until bytes can be taken. Those who have waited longest try first.
   * @returns whether they were taken within the time
   */
  wait(take: Try, milliseconds: number): Promise<boolean> {
    return new Promise((resolve) => {
      const retry = () => {
        if (!take()) return false
        clearTimeout(timer)
        resolve(true)
        return true
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(retry)
        resolve(false)
      }, milliseconds)
      this.#waiting.add(retry)
    })
  }

  get #whole(): Share {
    return { name: whole, key: '', maxBytes: this.maxBytes }
  }

  /** Lets those who wait try again soon: what has just returned bytes may hold a part of them in another form first. */
  #scheduleRetry(): void {
    if (this.#waiting.size === 0 || this.#isRetryScheduled) return
    this.#isRetryScheduled = true
    setImmediate(() => {
      this.#isRetryScheduled = false
      for (const retry of this.#waiting) if (retry()) this.#waiting.delete(retry)
    })
  }

  #usedOf(share: Share): number {
    return this.#used.get(keyOf(share)) ?? 0
  }
}

function keyOf({ name, key }: Share): string {
  return `${name}:${key}`
}

/** The bytes that one holder has reserved. */
export class Reservation {
  readonly #budget: ByteBudget
  readonly #shares: readonly Share[]
  #bytes = 0
  #isReleased = false

  constructor(budget: ByteBudget, shares: readonly Share[]) {
    this.#budget = budget
    this.#shares = shares
  }

  /** The number of reserved bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Reserves further bytes. Returns the share that has no room for them, or undefined. */
  take(bytes: number): Share | undefined {
    const full = this.#try(bytes)
    if (full !== undefined) this.#budget.reject(full)
    return full
  }

  /**
   * Reserves further bytes, and waits for room if there is none.
   * @returns undefined when they are reserved; otherwise a promise of the share that has no room after some milliseconds,
   * or of undefined
   */
  takeOrWait(bytes: number, milliseconds: number): Promise<Share | undefined> | undefined {
    let full = this.#try(bytes)
    if (full === undefined) return undefined
    const retry = () => (full = this.#try(bytes)) === undefined
    return this.#budget.wait(retry, milliseconds).then((isTaken) => {
      if (isTaken || full === undefined) return undefined
      this.#budget.reject(full)
      return full
    })
  }

  /** Reserves further bytes even if there is no room, for what is already in memory. */
  force(bytes: number): void {
    if (this.#isReleased) return
    this.#budget.add(bytes, this.#shares)
    this.#bytes += bytes
  }

  /** Releases all bytes. Idempotent. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#budget.add(-this.#bytes, this.#shares)
  }

  #try(bytes: number): Share | undefined {
    if (this.#isReleased) return undefined
    const full = this.#budget.shareWithoutRoom(bytes, this.#bytes, this.#shares)
    if (full === undefined) this.force(bytes)
    return full
  }
}
