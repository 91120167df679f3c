// One tenant's share of its long-lived connections: how many this gateway may open, how many are open, and the waiters. No
// I/O.
import type { SlotGrant, SlotReport } from '@tenantry/contract'
import { WaiterQueue, type Waiter } from './waiter-queue.ts'

const exhaustedMilliseconds = 1_000
/** Spare slots are held for short connections, according to the maximum number of open ones within two of these windows. */
const windowMilliseconds = 5_000
const maxSpare = 50

export class Slots {
  readonly tenantId: string
  readonly waiters = new WaiterQueue()
  /** The plan's limit; Infinity without one. */
  limit = Infinity
  state: SlotGrant['state'] | 'unknown' = 'unknown'
  /** Whether held slots or open connections changed since they were last reported. */
  changed = false
  /** Whether the tenant is served, so that some slots are requested before its first connection, and held. */
  #isServed = false
  /** Whether other gateways need unused slots. */
  isRecalled = false
  #open = 0
  #held = 0
  #openElsewhere = 0
  #isLow = false
  /** Whether the state has changed since the last report, so that a grant in response to it is outdated. */
  #isReportStale = false
  /** False after nothing was granted in advance. Then only waiting connections request slots. */
  #requestsAhead = true
  #exhaustedUntil = -Infinity
  /** The maximum number of open connections in this window and in the one before. */
  #peak = 0
  #peakBefore = 0
  #windowSince = -Infinity

  constructor(tenantId: string) {
    this.tenantId = tenantId
  }

  get open(): number {
    return this.#open
  }

  get held(): number {
    return this.#held
  }

  /** The number of open connections at all gateways, as far as this one knows. */
  get openInAll(): number {
    return this.#openElsewhere + this.#open
  }

  /** Notes whether the tenant is served. */
  serve(isServed: boolean): void {
    if (isServed && !this.#isServed && this.#held <= this.#open) {
      this.state = 'unknown'
      this.#requestsAhead = true
      this.#isReportStale = true
    }
    this.#isServed = isServed
  }

  /** Continues with the slots of an earlier boot, whose connections are closed. */
  inherit(held: number, limit: number): void {
    this.limit = limit
    this.#held = held
    this.changed = true
  }

  /** Releases all slots. No connection opens any more. */
  releaseAll(): void {
    this.#held = 0
  }

  /** Whether more should be requested. */
  get isLow(): boolean {
    return this.#isLow || this.waiters.size > 0 || (this.#isServed && !this.isHeld)
  }

  /**
   * Whether connections are opened without the control plane: a slot remains, there is no limit, or the control plane has
   * reported that no slot is available in advance.
   */
  get isHeld(): boolean {
    return this.limit === Infinity || this.#held > this.#open || this.state !== 'unknown'
  }

  isExhausted(now: number): boolean {
    return this.#open >= this.limit || (this.state === 'exhausted' && now < this.#exhaustedUntil)
  }

  /**
   * Takes a slot.
   * @param now milliseconds, monotonic
   * @returns whether there is one for another connection, which is open from then on
   */
  take(now: number): boolean {
    if (this.limit !== Infinity && this.#open >= Math.min(this.#held, this.limit)) return false
    this.#countOpened(1, now)
    this.#isLow =
      this.#requestsAhead && !this.isRecalled && this.limit !== Infinity && this.#held - this.#open < this.#spare / 2
    return true
  }

  /**
   * Closes a connection.
   * @returns the waiter that receives its slot
   */
  close(): Waiter | undefined {
    this.#open--
    this.changed = true
    const [next] = this.waiters
    if (next === undefined || this.#open >= Math.min(this.#held, this.limit)) return undefined
    this.waiters.delete(next)
    this.#open++
    return next
  }

  /** Whether there is something to report, such as unneeded slots, which are released with a report. */
  hasChanges(now: number, mayRelease: boolean): boolean {
    const isOverdrawn = this.limit !== Infinity && this.#open > this.#held
    return this.changed || this.isLow || isOverdrawn || (mayRelease && this.#needed(now) < this.#held)
  }

  /** Makes a report. The slots that it states as held are valid from then on, whether the report arrives or not. */
  report(now: number, mayRelease: boolean): SlotReport {
    this.changed = false
    this.#isReportStale = false
    if (mayRelease) this.#held = Math.min(this.#held, this.#needed(now))
    const waiting = Math.max(0, this.#open + this.waiters.size - this.#held)
    const ahead = this.isLow && this.#requestsAhead && !this.isRecalled ? this.#spare : 0
    this.#isLow = false
    if (this.limit === Infinity) {
      this.#held = 0
      return { tenant_id: this.tenantId, open: 0, keep: 0, ask: 0, waiting: 0 }
    }
    const request = Math.max(0, this.#open + this.waiters.size + ahead - this.#held)
    return { tenant_id: this.tenantId, open: this.#open, keep: this.#held, ask: request, waiting }
  }

  /**
   * Applies a grant.
   * @param ownOpen the number of the grant's open connections that are this gateway's
   * @returns the waiters that may proceed
   */
  granted({ held, open, state }: SlotGrant, ownOpen: number, now: number): Waiter[] {
    this.#openElsewhere = Math.max(0, open - ownOpen)
    if (this.#isReportStale) {
      this.changed = true
      return []
    }
    this.state = state
    this.#exhaustedUntil = now + exhaustedMilliseconds
    if (held === null) return this.#leave(this.waiters.size, now)
    this.#requestsAhead = held > this.#held
    this.#held = held
    return this.#leave(Math.min(held, this.limit) - this.#open, now)
  }

  /** Removes all waiters, without a slot. */
  leaveAll(): Waiter[] {
    const leaving = [...this.waiters]
    this.waiters.clear()
    return leaving
  }

  /**
   * Changes the plan's limit.
   * @returns the waiters that may proceed
   */
  changeLimit(limit: number, now: number): Waiter[] {
    if (limit === this.limit) return []
    if (this.limit !== Infinity && limit < this.limit) {
      // All gateways together may hold more slots than the new limit allows.
      this.#held = Math.min(this.#held, this.#open)
      this.#isReportStale = true
    }
    this.limit = limit
    this.state = 'unknown'
    this.#requestsAhead = true
    this.changed = true
    return limit === Infinity ? this.#leave(this.waiters.size, now) : []
  }

  /** Removes up to `slots` waiters from the queue and opens their connections. */
  #leave(slots: number, now: number): Waiter[] {
    const leaving = [...this.waiters].slice(0, Math.max(0, slots))
    for (const waiter of leaving) this.waiters.delete(waiter)
    if (leaving.length > 0) this.#countOpened(leaving.length, now)
    return leaving
  }

  #countOpened(count: number, now: number): void {
    this.#turn(now)
    this.#open += count
    this.changed = true
    this.#peak = Math.max(this.#peak, this.#open)
  }

  /** Returns the number of slots to hold: those of open connections, and those that may be needed soon. */
  #needed(now: number): number {
    if (this.limit === Infinity) return 0
    if (this.isRecalled || this.#open >= this.limit) return this.#open
    this.#turn(now)
    const lately = Math.max(this.#peak, this.#peakBefore)
    return lately === 0 && !this.#isServed ? 0 : lately + this.#spare
  }

  #turn(now: number): void {
    const passed = now - this.#windowSince
    if (passed < windowMilliseconds) return
    this.#peakBefore = passed < 2 * windowMilliseconds ? this.#peak : this.#open
    this.#peak = this.#open
    this.#windowSince = now
  }

  /** The number of slots to hold beyond the open connections, so that the next few connections need not wait. */
  get #spare(): number {
    return this.limit === Infinity
      ? 0
      : Math.min(maxSpare, Math.ceil(this.limit / 50), Math.max(0, this.limit - this.#open - this.waiters.size))
  }
}
