// One tenant's share of its connections that stay: how many this gateway may have open, how many are, and who waits. No I/O.
import type { SlotGrant, SlotReport } from '@tenantry/contract'
import type { Waiter } from './lease.ts'

const exhaustedMilliseconds = 1_000
/** Slots without a connection are kept for those that come and go: as many as were open within two of these times. */
const windowMilliseconds = 5_000
const maxSpare = 50

export class Slots {
  readonly tenantId: string
  readonly waiters = new Set<Waiter>()
  /** Of the plan; Infinity: none. */
  limit = Infinity
  state: SlotGrant['state'] | 'unknown' = 'unknown'
  /** Whether what it holds or has open changed since it was last reported. */
  changed = false
  /** Whether the tenant is served: then some slots are asked for before its first connection, and kept. */
  #isServed = false
  /** Whether others want what is not in use here. */
  isRecalled = false
  #open = 0
  #held = 0
  #openElsewhere = 0
  #isLow = false
  /** Whether the last report does not hold any longer: what is granted in answer to it was asked for before. */
  #isReportOld = false
  /** False after nothing was granted in advance: then it is asked for only by those who wait. */
  #requestsAhead = true
  #exhaustedUntil = -Infinity
  /** The most that were open in this window of time and in the one before. */
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

  /** At all gateways, as far as this one knows. */
  get openInAll(): number {
    return this.#openElsewhere + this.#open
  }

  /** The tenant is served from now on, or no longer. */
  serve(isServed: boolean): void {
    if (isServed && !this.#isServed && this.#held <= this.#open) {
      this.state = 'unknown'
      this.#requestsAhead = true
      this.#isReportOld = true
    }
    this.#isServed = isServed
  }

  /** Goes on with what an earlier incarnation has left: the connections of that one are closed. */
  inherit(held: number, limit: number): void {
    this.limit = limit
    this.#held = held
    this.changed = true
  }

  /** Nothing is opened any more. */
  releaseAll(): void {
    this.#held = 0
  }

  /** Whether it should be asked for more. */
  get isLow(): boolean {
    return this.#isLow || this.waiters.size > 0 || (this.#isServed && !this.isHeld)
  }

  /**
   * Whether connections are opened without the control plane: a slot is left, there is no limit, or the control plane has
   * reported that none can be had in advance.
   */
  get isHeld(): boolean {
    return this.limit === Infinity || this.#held > this.#open || this.state !== 'unknown'
  }

  isExhausted(now: number): boolean {
    return this.#open >= this.limit || (this.state === 'exhausted' && now < this.#exhaustedUntil)
  }

  /** @param now milliseconds, monotonic @returns whether there is room for one more, which is open from then on */
  take(now: number): boolean {
    if (this.limit !== Infinity && this.#open >= Math.min(this.#held, this.limit)) return false
    this.#opens(1, now)
    this.#isLow =
      this.#requestsAhead && !this.isRecalled && this.limit !== Infinity && this.#held - this.#open < this.#spare / 2
    return true
  }

  /** @returns who has waited for it */
  close(): Waiter | undefined {
    this.#open--
    this.changed = true
    const [next] = this.waiters
    if (next === undefined || this.#open >= Math.min(this.#held, this.limit)) return undefined
    this.waiters.delete(next)
    this.#open++
    return next
  }

  /** Whether there is something to tell: slots that are not needed any longer are given back with a report. */
  hasChanges(now: number, mayGiveBack: boolean): boolean {
    const owes = this.limit !== Infinity && this.#open > this.#held
    return this.changed || this.isLow || owes || (mayGiveBack && this.#needed(now) < this.#held)
  }

  /** What it says it keeps, it goes by from then on, whether the report arrives or not. */
  report(now: number, mayGiveBack: boolean): SlotReport {
    this.changed = false
    this.#isReportOld = false
    if (mayGiveBack) this.#held = Math.min(this.#held, this.#needed(now))
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

  /** @param reported `open` of the report that this answers @returns those who waited and may go */
  granted({ held, open, state }: SlotGrant, reported: number, now: number): Waiter[] {
    this.#openElsewhere = Math.max(0, open - reported)
    if (this.#isReportOld) {
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

  /** Takes all out who wait, without a place. */
  leaveAll(): Waiter[] {
    const leaving = [...this.waiters]
    this.waiters.clear()
    return leaving
  }

  /** The plan has another number now. @returns those who waited and may go */
  changeLimit(limit: number, now: number): Waiter[] {
    if (limit === this.limit) return []
    if (this.limit !== Infinity && limit < this.limit) {
      // All gateways together may hold more than it allows.
      this.#held = Math.min(this.#held, this.#open)
      this.#isReportOld = true
    }
    this.limit = limit
    this.state = 'unknown'
    this.#requestsAhead = true
    this.changed = true
    return limit === Infinity ? this.#leave(this.waiters.size, now) : []
  }

  /** Those who wait get a place as far as there are some. */
  #leave(slots: number, now: number): Waiter[] {
    const leaving = [...this.waiters].slice(0, Math.max(0, slots))
    for (const waiter of leaving) this.waiters.delete(waiter)
    if (leaving.length > 0) this.#opens(leaving.length, now)
    return leaving
  }

  #opens(count: number, now: number): void {
    this.#turn(now)
    this.#open += count
    this.changed = true
    this.#peak = Math.max(this.#peak, this.#open)
  }

  /** As many as are held at most: what is open, and what may soon be again. */
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

  /** Held beyond what is open, so that the next few need not wait. */
  get #spare(): number {
    return this.limit === Infinity
      ? 0
      : Math.min(maxSpare, Math.ceil(this.limit / 50), Math.max(0, this.limit - this.#open - this.waiters.size))
  }
}
