// One tenant's share of its monthly requests: what this gateway may let in without asking, and who waits for more. No I/O.
import type { LeaseGrant, LeaseReport } from '@tenantry/contract'

/** A request that waits. One of the three is called, once, unless it leaves before. */
export interface Waiter {
  go(): void
  exhausted(): void
  /** Nobody could say in time. */
  unknown(): void
}

/** The month as the control plane's clock has it, along the gateway's monotonic one, in milliseconds. */
export interface MonthClock {
  month: string
  endsAt: number
  /** Of the control plane's clock at a moment of the monotonic one. */
  wall(elapsed: number): number
}

const hourMilliseconds = 3_600_000
const exhaustedMilliseconds = 1_000
/** What is let in so shortly after an hour's begin may be counted in the hour before: it is taken for both. */
const hourMargin = 250
const smallestSlice = 20
const firstSliceLimit = 10_000
const greatestSlice = 50_000
/** Milliseconds: a slice that is used up faster is followed by a larger one, one that lasts longer by a smaller one. */
const fast = 2_000
const slow = 20_000

export class Lease {
  readonly tenantId: string
  readonly waiters = new Set<Waiter>()
  /** Whether its counts changed since they were last reported. */
  changed = false
  state: LeaseGrant['state'] | 'unknown' = 'unknown'
  /** Of the plan, and what all gateways together have used, as far as they had said at the last answer. */
  limit: number
  #usedElsewhere = 0
  #month: string | undefined
  #granted = 0
  #used = 0
  #usedBefore = 0
  #hour: string | undefined
  /** When hour or month end. */
  #turnAt = -Infinity
  #clock: MonthClock | undefined
  #slice: number
  #grantedAt = -Infinity
  #isLow = false
  /** False after nothing was granted in advance: it is near its end, and asked for only by those who wait. */
  #asksAhead = true
  /** Until then it is not asked again whether others gave back, or lost, what they had. */
  #exhaustedUntil = -Infinity

  constructor(tenantId: string, limit: number) {
    this.tenantId = tenantId
    this.limit = limit
    this.#slice = firstSlice(limit)
  }

  /** Whether it should be asked for more. */
  get isLow(): boolean {
    return this.#isLow || this.waiters.size > 0
  }

  isExhausted(now: number): boolean {
    return this.state === 'exhausted' && now < this.#exhaustedUntil
  }

  get free(): number {
    return this.#granted - this.#used
  }

  /** Of the whole month, as far as this gateway knows. */
  get usedInAll(): number {
    return this.#usedElsewhere + this.#used
  }

  /** Milliseconds until the month's end; undefined before anything was granted. */
  resetIn(now: number): number | undefined {
    return this.#clock === undefined ? undefined : Math.max(0, this.#clock.endsAt - now)
  }

  /** @param now milliseconds, monotonic @returns whether the request is let in */
  take(now: number): boolean {
    if (now >= this.#turnAt) this.#turn(now)
    if (this.#granted <= this.#used) return false
    this.#used++
    this.changed = true
    this.#isLow = this.#asksAhead && this.#granted - this.#used <= this.#slice / 2
    return true
  }

  /** Nothing is let in any more until it is granted anew. */
  giveBack(): void {
    if (this.#granted > this.#used) this.changed = true
    this.#granted = this.#used
    this.#isLow = false
  }

  /** The plan allows another number now. */
  changeLimit(limit: number): void {
    this.giveBack()
    this.limit = limit
    this.#slice = firstSlice(limit)
    this.state = 'unknown'
  }

  report(): LeaseReport {
    this.changed = false
    const waiting = this.waiters.size
    const ask = this.isLow ? Math.max(waiting, Math.ceil(this.#slice) - this.free) : 0
    const month = this.#month === undefined ? {} : { month: this.#month }
    const hour = this.#hour === undefined ? {} : { hour: this.#hour }
    return { tenant_id: this.tenantId, ...month, used: this.#used, ...hour, used_before: this.#usedBefore, keep: this.#granted, ask, waiting }
  }

  /** @param reported `used` of the report that this answers @returns those who waited and may go */
  granted({ granted, limit, used, state }: LeaseGrant, reported: number, clock: MonthClock, now: number): Waiter[] {
    this.#isLow = false
    this.state = state
    this.#exhaustedUntil = now + exhaustedMilliseconds
    if (granted === null || limit === null) return this.#leave(this.waiters.size)
    if (this.#month !== clock.month) {
      this.#month = clock.month
      this.#used = 0
      this.#usedElsewhere = used
      this.#beginHour(clock.wall(now))
      this.#usedBefore = 0
    } else this.#usedElsewhere = Math.max(0, used - reported)
    this.#asksAhead = granted > this.#granted
    if (this.#asksAhead) {
      const lasted = now - this.#grantedAt
      this.#grantedAt = now
      if (lasted < fast) this.#slice = Math.min(this.#slice * 2, greatestSlice)
      else if (lasted > slow) this.#slice = Math.max(this.#slice / 2, firstSlice(limit))
    }
    this.limit = limit
    this.#granted = granted
    this.#clock = clock
    this.#setTurn(now)
    const going = this.#leave(Math.min(this.waiters.size, this.free))
    this.#used += going.length
    if (going.length > 0) this.changed = true
    return going
  }

  /** Takes all out who wait. */
  leaveAll(): Waiter[] {
    return this.#leave(this.waiters.size)
  }

  #leave(count: number): Waiter[] {
    const leaving = [...this.waiters].slice(0, count)
    for (const waiter of leaving) this.waiters.delete(waiter)
    return leaving
  }

  #turn(now: number): void {
    if (this.#clock === undefined) return
    if (now >= this.#clock.endsAt) {
      this.giveBack()
      this.state = 'unknown'
      this.#turnAt = Infinity
      return
    }
    this.#beginHour(this.#clock.wall(now))
    this.#setTurn(now)
  }

  #beginHour(wall: number): void {
    const hour = new Date(Math.floor((wall - hourMargin) / hourMilliseconds) * hourMilliseconds).toISOString()
    if (hour === this.#hour) return
    this.#hour = hour
    this.#usedBefore = this.#used
  }

  #setTurn(now: number): void {
    if (this.#clock === undefined) return
    const wall = this.#clock.wall(now)
    const nextHour = (Math.floor((wall - hourMargin) / hourMilliseconds) + 1) * hourMilliseconds + hourMargin
    this.#turnAt = Math.min(this.#clock.endsAt, now + nextHour - wall)
  }
}

function firstSlice(limit: number): number {
  return Math.min(Math.max(Math.ceil(limit / 100), smallestSlice), firstSliceLimit)
}
