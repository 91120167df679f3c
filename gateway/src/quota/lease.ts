// One tenant's lease of its monthly requests: what this gateway may admit without a call, and the requests that wait for
// more. No I/O.
import { hourMilliseconds, hourOf, type LeaseGrant, type LeaseReport } from '@tenantry/contract'
import type { PersistedLease } from './persisted-lease.ts'
import { WaiterQueue, type Waiter } from './waiter-queue.ts'

/** The control plane's month along the gateway's monotonic clock, in milliseconds. */
export interface MonthClock {
  month: string
  endsAt: number
  /** Returns the control plane's time at a monotonic time; undefined while it is not known. */
  wall(elapsed: number): number | undefined
}

/**
 * Stores the remaining lease. `endsAt` is monotonic; `owner` is undefined when the control plane granted the lease to this
 * boot.
 */
export type StoreLease = (
  remaining: Pick<PersistedLease, 'month' | 'limit' | 'free' | 'spent'> & { endsAt: number; owner: string | undefined },
) => void

const exhaustedMilliseconds = 1_000
/**
 * The milliseconds after an hour's begin in which a request may be counted in the hour before, so that it is reported for
 * both.
 */
const hourMargin = 250
const minSlice = 20
const maxReserved = 64
const firstSliceLimit = 10_000
const maxSlice = 50_000
/**
 * Milliseconds. A larger slice follows one that is used up faster than `fast`, a smaller slice one that lasts longer than
 * `slow`.
 */
const fast = 2_000
const slow = 20_000

export class Lease {
  readonly tenantId: string
  /** An object that identifies the month, and is replaced in each. */
  term: object = {}
  readonly #store: StoreLease
  readonly waiters = new WaiterQueue()
  /** Whether the counts changed since they were last reported. */
  changed = false
  state: LeaseGrant['state'] | 'unknown' = 'unknown'
  /** Whether the tenant is served, so that a part of each month is requested before its first request. */
  #isServed = false
  /** The plan's limit, and the use of all gateways that had been reported when the last response was made. */
  limit: number
  #usedElsewhere = 0
  #month: string | undefined
  #granted = 0
  /** The number of counted requests, which only grows. */
  #used = 0
  /** The number of admitted requests that are not counted yet. They hold a part of the lease. */
  #pending = 0
  /** The stored number of used requests. It is ahead of the use, so that few requests wait for the disk. */
  #reserved = 0
  #inherited: LeaseReport['inherited']
  /**
   * Whether a part was released since the last report. A grant in response to that report was then requested before the
   * release.
   */
  #hasReleased = false
  #usedBefore = 0
  #hour: string | undefined
  /** The time at which the hour or the month ends. */
  #turnAt = -Infinity
  #clock: MonthClock | undefined
  #slice: number
  #grantedAt = -Infinity
  #isLow = false
  /**
   * False after nothing was granted in advance. The month's quota is nearly used up, so only waiting requests request more.
   */
  #requestsAhead = true
  /**
   * The time until which the control plane is not called again to find out whether other gateways released or lost leases.
   */
  #exhaustedUntil = -Infinity

  /**
   * Creates an empty lease.
   * @param store stores what remains before it is used
   */
  constructor(tenantId: string, limit: number, store: StoreLease = () => undefined) {
    this.tenantId = tenantId
    this.limit = limit
    this.#store = store
    this.#slice = firstSlice(limit)
  }

  /** Whether more should be requested. */
  get isLow(): boolean {
    return this.#isLow || this.waiters.size > 0 || (this.#isServed && !this.isHeld)
  }

  /**
   * Whether requests are served without the control plane: a part remains, or the control plane has reported that nothing
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

  /** The use of the whole month by all gateways, as far as this one knows. */
  get usedInAll(): number {
    return this.#usedElsewhere + this.#taken
  }

  /** Notes whether the tenant is served. */
  serve(isServed: boolean): void {
    if (isServed && !this.#isServed && this.free <= 0) this.state = 'unknown'
    this.#isServed = isServed
  }

  /** Returns the milliseconds until the month's end; undefined before the first grant. */
  resetIn(now: number): number | undefined {
    return this.#clock === undefined ? undefined : Math.max(0, this.#clock.endsAt - now)
  }

  /**
   * Takes one request.
   * @param now milliseconds, monotonic
   * @returns whether the request is admitted; then the caller calls `settle` once
   */
  take(now: number): boolean {
    if (now >= this.#turnAt) this.#turn(now)
    if (this.free <= 0) return false
    this.#pending++
    if (this.#taken > this.#reserved) this.#reserve()
    this.#isLow = this.#requestsAhead && this.free <= this.#slice / 2
    return true
  }

  /**
   * Settles an admitted request: it used one of the month's, or was rejected and used none.
   * @param term the term in which it was admitted; a request of an earlier month was used with that month
   * @returns the waiters that may proceed instead
   */
  settle(term: object, isUsed: boolean): Waiter[] {
    if (term !== this.term) return []
    this.#pending--
    if (!isUsed) return this.#admit(Math.max(0, this.free))
    this.#used++
    this.changed = true
    return []
  }

  /** Admits all waiters, whatever remains. */
  admitAll(): Waiter[] {
    return this.#admit(this.waiters.size)
  }

  /** Releases what remains. Nothing is admitted until the next grant. */
  release(): void {
    this.#isLow = false
    // Released even when nothing remains, because a grant may be on its way or may have been lost.
    this.#hasReleased = true
    this.changed = true
    if (this.free === 0) return
    this.#granted = this.#taken
    this.#reserved = this.#taken
    this.#storeRemaining()
  }

  /**
   * Ends the term when the control plane reports another month, because its clock was set or this machine was suspended.
   */
  checkMonth(month: string): void {
    if (this.#month !== undefined && this.#month !== month && this.#turnAt !== Infinity) this.#end()
  }

  /** Stores what is not used for the next boot, because this one admits no more requests. */
  storeFree(): void {
    this.#reserved = this.#taken
    this.#storeRemaining()
  }

  /** Continues with the lease of an earlier boot. Hours are separated once the control plane's clock is known. */
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

  /** Changes the plan's limit. */
  changeLimit(limit: number): void {
    this.release()
    this.limit = limit
    this.#slice = firstSlice(limit)
    this.state = 'unknown'
  }

  report(): LeaseReport {
    this.changed = false
    this.#hasReleased = false
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

  /** Notes that the control plane accepted the last report. */
  reportAccepted(): void {
    if (this.#inherited === undefined) return
    this.#inherited = undefined
    this.#storeRemaining()
  }

  /**
   * Applies a grant.
   * @param reportedUse `used` of the report that this grant responds to
   * @returns the waiters that may proceed
   */
  granted({ granted, limit, used, state }: LeaseGrant, reportedUse: number, clock: MonthClock, now: number): Waiter[] {
    this.#isLow = false
    if (this.#hasReleased) {
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
    } else this.#usedElsewhere = Math.max(0, used - reportedUse)
    this.#requestsAhead = granted > this.#granted
    if (this.#requestsAhead) {
      const lasted = now - this.#grantedAt
      this.#grantedAt = now
      if (lasted < fast) this.#slice = Math.min(this.#slice * 2, maxSlice)
      else if (lasted > slow) this.#slice = Math.max(this.#slice / 2, firstSlice(limit))
    }
    const isLess = granted < this.#granted
    this.limit = limit
    this.#granted = granted
    // The control plane does not know the remaining lease of an earlier boot, so more may be available.
    if (isLess && this.free <= 0) this.state = 'unknown'
    this.#clock = clock
    this.#setTurn(now)
    const going = this.#admit(Math.max(0, this.free))
    if (this.#taken > this.#reserved) this.#reserve()
    else this.#storeRemaining()
    return going
  }

  /** Removes all waiters. */
  leaveAll(): Waiter[] {
    return this.#leave(this.waiters.size)
  }

  #reserve(): void {
    this.#reserved = Math.min(this.#granted, this.#taken + Math.min(maxReserved, Math.floor(this.free / 8)))
    this.#storeRemaining()
  }

  #storeRemaining(): void {
    if (this.#month === undefined || this.#clock === undefined) return
    const owner = this.#inherited?.boot
    const free = Math.max(0, this.#granted - this.#reserved)
    this.#store({
      month: this.#month,
      endsAt: this.#clock.endsAt,
      limit: this.limit,
      free,
      spent: owner === undefined ? 0 : this.#reserved,
      owner,
    })
  }

  /** Admits up to `count` waiters. */
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

  /** Ends the month. Nothing is admitted until the next grant. */
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
  return Math.min(Math.max(Math.ceil(limit / 100), minSlice), firstSliceLimit)
}
