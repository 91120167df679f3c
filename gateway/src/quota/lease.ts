// One tenant's share of its monthly requests: what this gateway may let in without asking, and who waits for more. No I/O.
import { hourMilliseconds, hourOf, type LeaseGrant, type LeaseReport } from '@tenantry/contract'
import type { PersistedLease } from './persisted-lease.ts'

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
  /** Of the control plane's clock at a moment of the monotonic one; undefined while that is not known. */
  wall(elapsed: number): number | undefined
}

/** `endsAt` is of the monotonic clock; `owner` is absent when the control plane has granted it to this very incarnation. */
export type RenewLease = (
  left: Pick<PersistedLease, 'month' | 'limit' | 'free' | 'spent'> & { endsAt: number; owner: string | undefined },
) => void

const exhaustedMilliseconds = 1_000
/** What is let in so shortly after an hour's begin may be counted in the hour before: it is taken for both. */
const hourMargin = 250
const smallestSlice = 20
const maxReserved = 64
const firstSliceLimit = 10_000
const greatestSlice = 50_000
/** Milliseconds: a slice that is used up faster is followed by a larger one, one that lasts longer by a smaller one. */
const fast = 2_000
const slow = 20_000

export class Lease {
  readonly tenantId: string
  /** Another one in each month. */
  term: object = {}
  readonly #keep: RenewLease
  readonly waiters = new Set<Waiter>()
  /** Whether its counts changed since they were last reported. */
  changed = false
  state: LeaseGrant['state'] | 'unknown' = 'unknown'
  /** Whether the tenant is served: then a part of each month is asked for before its first request. */
  #isServed = false
  /** Of the plan, and what all gateways together have used, as far as they had said at the last answer. */
  limit: number
  #usedElsewhere = 0
  #month: string | undefined
  #granted = 0
  /** Requests that were counted. It only grows. */
  #used = 0
  /** Requests that were let in and are not counted yet: they hold a part of the lease. */
  #pending = 0
  /** What was written down as used: a part is ahead of the use, so that few requests wait for the disk. */
  #reserved = 0
  #inherited: LeaseReport['inherited']
  /** Whether something was given back since the last report: what is granted in answer to that was asked for before. */
  #gaveBack = false
  #usedBefore = 0
  #hour: string | undefined
  /** When hour or month end. */
  #turnAt = -Infinity
  #clock: MonthClock | undefined
  #slice: number
  #grantedAt = -Infinity
  #isLow = false
  /** False after nothing was granted in advance: it is near its end, and asked for only by those who wait. */
  #requestsAhead = true
  /** Until then it is not asked again whether others gave back, or lost, what they had. */
  #exhaustedUntil = -Infinity

  /** @param keep writes down what is left, before it is used */
  constructor(tenantId: string, limit: number, keep: RenewLease = () => undefined) {
    this.tenantId = tenantId
    this.limit = limit
    this.#keep = keep
    this.#slice = firstSlice(limit)
  }

  /** Whether it should be asked for more. */
  get isLow(): boolean {
    return this.#isLow || this.waiters.size > 0 || (this.#isServed && !this.isHeld)
  }

  /**
   * Whether requests are served without the control plane: something is left, or the control plane has reported that nothing
   * can be leased in advance.
   */
  get isHeld(): boolean {
    return this.free > 0 || this.state !== 'unknown'
  }

  isExhausted(now: number): boolean {
    return this.state === 'exhausted' && now < this.#exhaustedUntil
  }

  get free(): number {
    return this.#granted - this.#taken
  }

  get #taken(): number {
    return this.#used + this.#pending
  }

  /** Of the whole month, as far as this gateway knows. */
  get usedInAll(): number {
    return this.#usedElsewhere + this.#taken
  }

  /** The tenant is served from now on, or no longer. */
  serve(isServed: boolean): void {
    if (isServed && !this.#isServed && this.free <= 0) this.state = 'unknown'
    this.#isServed = isServed
  }

  /** Milliseconds until the month's end; undefined before anything was granted. */
  resetIn(now: number): number | undefined {
    return this.#clock === undefined ? undefined : Math.max(0, this.#clock.endsAt - now)
  }

  /** @param now milliseconds, monotonic @returns whether the request is let in; then `settle` follows, once */
  take(now: number): boolean {
    if (now >= this.#turnAt) this.#turn(now)
    if (this.free <= 0) return false
    this.#pending++
    if (this.#taken > this.#reserved) this.#reserve()
    this.#isLow = this.#requestsAhead && this.free <= this.#slice / 2
    return true
  }

  /**
   * A request that was let in has been counted: it used one of the month's, or was rejected and used none.
   * @param term in which it was let in; one of an earlier month was used with that month
   * @returns those who waited and may go in its place
   */
  settle(term: object, isUsed: boolean): Waiter[] {
    if (term !== this.term) return []
    this.#pending--
    if (!isUsed) return this.#admit(Math.max(0, this.free))
    this.#used++
    this.changed = true
    return []
  }

  /** Lets all go who wait, whatever is left. */
  admitAll(): Waiter[] {
    return this.#admit(this.waiters.size)
  }

  /** Nothing is let in any more until it is granted anew. */
  release(): void {
    this.#isLow = false
    // Also when there is nothing: something may be on its way, or was lost on it.
    this.#gaveBack = true
    this.changed = true
    if (this.free === 0) return
    this.#granted = this.#taken
    this.#reserved = this.#taken
    this.#writeDown()
  }

  /** The control plane says which month it is: its clock was set, or this machine stood still, where that is another one. */
  reportedMonth(month: string): void {
    if (this.#month !== undefined && this.#month !== month && this.#turnAt !== Infinity) this.#end()
  }

  /** Nothing more will be let in: all that is not used is the next incarnation's, if nobody takes it back. */
  rest(): void {
    this.#reserved = this.#taken
    this.#writeDown()
  }

  /** Goes on with what an earlier incarnation has left; the hours are told apart once the control plane's clock is known. */
  inherit({ owner, free, spent, limit, month }: PersistedLease, clock: MonthClock, now: number): void {
    this.limit = limit
    this.#month = month
    this.#clock = clock
    this.#granted = free + spent
    this.#used = spent
    this.#reserved = spent
    this.#inherited = { boot: owner, amount: free + spent }
    this.changed = true
    this.#setTurn(now)
  }

  /** The plan allows another number now. */
  changeLimit(limit: number): void {
    this.release()
    this.limit = limit
    this.#slice = firstSlice(limit)
    this.state = 'unknown'
  }

  report(): LeaseReport {
    this.changed = false
    this.#gaveBack = false
    const waiting = this.waiters.size
    const request = this.isLow ? Math.max(waiting, Math.ceil(this.#slice) - this.free) : 0
    const month = this.#month === undefined ? {} : { month: this.#month }
    const hour = this.#hour === undefined ? {} : { hour: this.#hour }
    const inherited = this.#inherited === undefined ? {} : { inherited: this.#inherited }
    return {
      tenant_id: this.tenantId,
      ...month,
      used: this.#used,
      ...hour,
      used_before: this.#usedBefore,
      keep: this.#granted,
      ...inherited,
      ask: request,
      waiting,
    }
  }

  /** A report of it was accepted. */
  reported(): void {
    if (this.#inherited === undefined) return
    this.#inherited = undefined
    this.#writeDown()
  }

  /** @param reported `used` of the report that this answers @returns those who waited and may go */
  granted({ granted, limit, used, state }: LeaseGrant, reported: number, clock: MonthClock, now: number): Waiter[] {
    this.#isLow = false
    if (this.#gaveBack) {
      this.changed = true
      return []
    }
    this.state = state
    this.#exhaustedUntil = now + exhaustedMilliseconds
    if (granted === null || limit === null) return this.admitAll()
    if (this.#month !== clock.month) {
      this.#month = clock.month
      this.#used = 0
      this.#beginTerm()
      this.#reserved = 0
      this.#inherited = undefined
      this.#usedElsewhere = used
      this.#beginHour(clock.wall(now))
      this.#usedBefore = 0
    } else this.#usedElsewhere = Math.max(0, used - reported)
    this.#requestsAhead = granted > this.#granted
    if (this.#requestsAhead) {
      const lasted = now - this.#grantedAt
      this.#grantedAt = now
      if (lasted < fast) this.#slice = Math.min(this.#slice * 2, greatestSlice)
      else if (lasted > slow) this.#slice = Math.max(this.#slice / 2, firstSlice(limit))
    }
    const isLess = granted < this.#granted
    this.limit = limit
    this.#granted = granted
    // The control plane does not know of what an earlier incarnation has left: there may be more to be had.
    if (isLess && this.free <= 0) this.state = 'unknown'
    this.#clock = clock
    this.#setTurn(now)
    const going = this.#admit(Math.max(0, this.free))
    if (this.#taken > this.#reserved) this.#reserve()
    else this.#writeDown()
    return going
  }

  /** Takes all out who wait. */
  leaveAll(): Waiter[] {
    return this.#leave(this.waiters.size)
  }

  #reserve(): void {
    this.#reserved = Math.min(this.#granted, this.#taken + Math.min(maxReserved, Math.floor(this.free / 8)))
    this.#writeDown()
  }

  #writeDown(): void {
    if (this.#month === undefined || this.#clock === undefined) return
    const owner = this.#inherited?.boot
    const free = Math.max(0, this.#granted - this.#reserved)
    this.#keep({
      month: this.#month,
      endsAt: this.#clock.endsAt,
      limit: this.limit,
      free,
      spent: owner === undefined ? 0 : this.#reserved,
      owner,
    })
  }

  /** Lets in so many of those who wait, at most. */
  #admit(count: number): Waiter[] {
    const going = this.#leave(count)
    this.#pending += going.length
    return going
  }

  #leave(count: number): Waiter[] {
    const leaving = [...this.waiters].slice(0, count)
    for (const waiter of leaving) this.waiters.delete(waiter)
    return leaving
  }

  #turn(now: number): void {
    if (this.#clock === undefined) return
    if (now >= this.#clock.endsAt) {
      this.#end()
      return
    }
    this.#beginHour(this.#clock.wall(now))
    this.#setTurn(now)
  }

  /** The month is over: nothing is let in before it is granted anew. */
  #end(): void {
    this.#used = this.#taken
    this.#beginTerm()
    this.release()
    this.state = 'unknown'
    this.#turnAt = Infinity
  }

  #beginTerm(): void {
    this.term = {}
    this.#pending = 0
  }

  #beginHour(wall: number | undefined): void {
    if (wall === undefined) return
    const hour = new Date(hourOf(wall - hourMargin)).toISOString()
    if (hour === this.#hour) return
    this.#hour = hour
    this.#usedBefore = this.#used
  }

  #setTurn(now: number): void {
    if (this.#clock === undefined) return
    const wall = this.#clock.wall(now)
    this.#turnAt = this.#clock.endsAt
    if (wall === undefined) return
    const nextHour = hourOf(wall - hourMargin) + hourMilliseconds + hourMargin
    this.#turnAt = Math.min(this.#clock.endsAt, now + nextHour - wall)
  }
}

function firstSlice(limit: number): number {
  return Math.min(Math.max(Math.ceil(limit / 100), smallestSlice), firstSliceLimit)
}
