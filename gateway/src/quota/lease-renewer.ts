// Leases of all tenants with a monthly quota: asks the control plane for more before they run out, gives back what others
// want, and says once a second what was used. Slots for connections go with the same calls.
import { internalPaths, LeaseResponse, Outage, pause, type LeaseCall } from '@tenantry/contract'
import { respondAs, postToControl, type ControlPlane } from '../control-call.ts'
import { Lease, type RenewLease, type MonthClock, type Waiter } from './lease.ts'
import type { PersistedFile, PersistedLease, PersistedSlots } from './persisted-lease.ts'
import { enterQueue } from './queue-waiter.ts'
import { SlotRenewer } from './slot-renewer.ts'
import type { Taken } from './taken.ts'

interface LeaseRenewerOptions {
  control: ControlPlane
  /** As in usage pushes. */
  source: string
  boot: string
  /** Earlier incarnations of which counts are still to be acknowledged. */
  unfinished: () => readonly string[]
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** Milliseconds since 1970. */
  now: () => number
  /** Where what is left is kept for the next incarnation. */
  file: PersistedFile<PersistedLease>
  slotFile: PersistedFile<PersistedSlots>
  onError: (error: Error) => void
  /** Requests that wait for a lease at once: of one tenant, and in all. */
  waitingPerTenant: number
  waiting: number
  /** Milliseconds for which one waits at most, between two calls with nothing urgent, and for one call. */
  maxWait?: number
  interval?: number
  timeout?: number
}

const reportsPerCall = 500
/** Milliseconds between two calls while others give back, or after one that granted less than waits. */
const pendingInterval = 50

export class LeaseRenewer {
  readonly slots: SlotRenewer
  readonly #options: LeaseRenewerOptions
  readonly #maxWait: number
  readonly #interval: number
  readonly #timeout: number
  readonly #leases = new Map<string, Lease>()
  #waiting = 0
  #sequence = 0
  #wake: (() => void) | undefined
  #isWanted = false
  /** Until then it is not asked again: the control plane did not answer. */
  #notBefore = -Infinity
  /** Since when it has not answered. */
  #failingSince: number | undefined
  readonly #outage = new Outage()
  #closed = false
  /** Whether nothing is left of earlier incarnations. */
  #settled = false

  constructor(options: LeaseRenewerOptions) {
    this.#options = options
    this.#maxWait = options.maxWait ?? 5_000
    this.#interval = options.interval ?? 1_000
    this.#timeout = options.timeout ?? 2_000
    const { waiting, waitingPerTenant, elapsed, slotFile: file } = options
    const isAway = (now: number) => this.#closed || this.#isCutOff(now)
    this.slots = new SlotRenewer({
      waiting,
      waitingPerTenant,
      elapsed,
      file,
      maxWait: this.#maxWait,
      want: () => this.#want(),
      isAway,
    })
  }

  /** Goes on with what an earlier incarnation has left. */
  load(): void {
    const { file, now, elapsed } = this.#options
    const [wallNow, monotonicNow] = [now(), elapsed()]
    for (const left of file.load(({ ends_at: endsAt }) => endsAt > wallNow)) {
      const lease = this.#made(left.tenant_id, left.limit)
      lease.inherit(
        left,
        { month: left.month, endsAt: monotonicNow + left.ends_at - wallNow, wall: () => undefined },
        monotonicNow,
      )
    }
    this.slots.load()
  }

  /** The lease of a tenant whose plan allows so many requests a month; one for as long as the tenant is known. */
  lease(tenantId: string, limit: number): Lease {
    let lease = this.#leases.get(tenantId)
    if (lease === undefined) {
      lease = this.#made(tenantId, limit)
    } else if (lease.limit !== limit) lease.changeLimit(limit)
    return lease
  }

  /** The tenant is served from now on, or no longer: then nothing is asked for in advance. */
  serve(lease: Lease, isServed: boolean): void {
    lease.serve(isServed)
    if (lease.isLow) this.#want()
  }

  /** The tenant has no quota any longer, or is gone. */
  drop(tenantId: string, isGone: boolean): void {
    const lease = this.#leases.get(tenantId)
    if (lease === undefined) return
    lease.release()
    if (isGone) this.#leases.delete(tenantId)
    for (const waiter of this.#left(lease.admitAll())) waiter.go()
  }

  /** @param now milliseconds, monotonic @param waiter is made when the request has to wait */
  take(lease: Lease, now: number, waiter: () => Waiter): { taken: Taken; leave?: () => void } {
    if (lease.waiters.size === 0 && lease.take(now)) {
      if (lease.isLow) this.#want()
      return admit
    }
    if (lease.isExhausted(now) || (this.#isUnanswered && lease.state === 'exhausted')) return exhausted
    if (this.#closed || this.#isCutOff(now)) return unknown
    if (this.#waiting >= this.#options.waiting || lease.waiters.size >= this.#options.waitingPerTenant) return full
    this.#waiting++
    const leave = enterQueue(waiter(), {
      waiters: lease.waiters,
      maxWait: this.#maxWait,
      isExhausted: () => lease.state === 'exhausted',
      onRemaining: () => this.#waiting--,
    })
    this.#want()
    return { taken: 'waits', leave }
  }

  /** As `Lease.settle`. */
  settle(lease: Lease, term: object, isUsed: boolean): void {
    for (const waiter of this.#left(lease.settle(term, isUsed))) waiter.go()
  }

  /** Calls until aborted; then gives all back. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const isStopped = () => signal.aborted
    while (!isStopped()) {
      const next =
        this.#settled && this.#leases.size === 0 && this.slots.isIdle ? 'when wanted' : await this.#call(false)
      if (isStopped()) break
      if (next === 'soon') await pause(pendingInterval, signal)
      else await this.#rest(signal)
    }
    this.#closed = true
    this.#rejectAll()
    if (this.#leases.size === 0 && this.slots.isIdle) return
    // What was given back is lost to the next incarnation, whether anybody heard of it or not.
    await this.#call(false)
    for (const lease of this.#leases.values()) {
      if (this.#failingSince !== undefined) lease.rest()
      else lease.release()
    }
    if (this.#failingSince !== undefined) return
    this.slots.releaseAll()
    await this.#call(true)
  }

  #made(tenantId: string, limit: number): Lease {
    const { file, boot, now, elapsed } = this.#options
    const keep: RenewLease = ({ endsAt, owner, ...left }) =>
      file.write({ tenant_id: tenantId, ...left, ends_at: now() + endsAt - elapsed(), owner: owner ?? boot })
    const lease = new Lease(tenantId, limit, keep)
    this.#leases.set(tenantId, lease)
    return lease
  }

  /** Whether nobody can say for now that there is more than was known last. */
  get #isUnanswered(): boolean {
    return this.#closed || this.#failingSince !== undefined
  }

  #isCutOff(now: number): boolean {
    return this.#failingSince !== undefined && now - this.#failingSince >= this.#maxWait
  }

  #want(): void {
    this.#isWanted = true
    this.#wake?.()
  }

  /** Until something is wanted, or the interval is over. */
  async #rest(signal: AbortSignal): Promise<void> {
    if (!this.#isWanted || this.#options.elapsed() < this.#notBefore) {
      const rested = new AbortController()
      this.#wake = () => {
        if (this.#options.elapsed() >= this.#notBefore) rested.abort()
      }
      await pause(this.#interval, AbortSignal.any([signal, rested.signal]))
      this.#wake = undefined
    }
    // What this turn of the event loop still asks for goes with the same call.
    await new Promise((resolve) => setImmediate(resolve))
  }

  /** @returns when those who wait need another */
  async #call(stopping: boolean): Promise<'soon' | 'when wanted'> {
    const { control, elapsed, source, boot, unfinished, onError } = this.#options
    this.#isWanted = false
    const reported = this.#due()
    const reports = reported.map((lease) => lease.report())
    // At the end, so that those who always have news keep nobody else from being told of.
    for (const lease of reported) {
      this.#leases.delete(lease.tenantId)
      this.#leases.set(lease.tenantId, lease)
    }
    const slots = this.slots.reports(reportsPerCall)
    const call = { source, boot, sequence: ++this.#sequence, unfinished: [...unfinished()], stopping, reports, slots }
    const sentAt = elapsed()
    let isPending: boolean
    try {
      const response = await respondAs(
        LeaseResponse,
        await postToControl(control, internalPaths.leases, { timeout: this.#timeout, body: call }),
      )
      if (!response.accepted) throw new Error(`the leases of ${source} were ended: another gateway bears its name`)
      this.#notBefore = -Infinity
      this.#failingSince = undefined
      this.#outage.over()
      this.#settled = call.unfinished.length === 0
      for (const lease of reported) lease.reported()
      this.#apply(response, call, sentAt)
      isPending = this.slots.apply(response, slots)
    } catch (cause) {
      for (const lease of reported) lease.changed = true
      this.slots.failed(slots)
      const now = elapsed()
      if (this.#outage.failed(now)) onError(new Error("tenants' requests could not be leased", { cause }))
      this.#failingSince ??= now
      this.#notBefore = now + this.#interval
      // A control plane that is being started anew is back in a moment: so long they may wait.
      for (const lease of this.#leases.values()) if (lease.state === 'exhausted') this.#exhaust(lease)
      if (this.#isCutOff(now)) this.#rejectAll()
      else if (this.#waiting + this.slots.waiting > 0) this.#isWanted = true
      return 'when wanted'
    }
    isPending ||= reported.some((lease) => lease.state === 'pending' && lease.waiters.size > 0)
    const isMore = reported.length === reportsPerCall || slots.length === reportsPerCall
    if (!isPending && (this.#waiting + this.slots.waiting > 0 || isMore)) this.#isWanted = true
    return isPending ? 'soon' : 'when wanted'
  }

  /** Leases to be reported in the next call, those of requests that wait first. */
  #due(): Lease[] {
    const due = [...this.#leases.values()].filter((lease) => lease.isLow || lease.changed)
    if (due.length <= reportsPerCall) return due
    const isAwaited = (lease: Lease) => lease.waiters.size > 0
    return [...due.filter(isAwaited), ...due.filter((lease) => !isAwaited(lease))].slice(0, reportsPerCall)
  }

  #apply(response: LeaseResponse, call: LeaseCall, sentAt: number): void {
    const now = this.#options.elapsed()
    const wallAtSending = Date.parse(response.now)
    const clock: MonthClock = {
      month: response.month,
      // The answer was made after the call was sent: the month ends here a little early rather than late.
      endsAt: sentAt + Date.parse(response.resets_at) - wallAtSending,
      wall: (at) => wallAtSending + at - sentAt,
    }
    const reports = new Map(call.reports.map((report) => [report.tenant_id, report]))
    for (const grant of response.grants) {
      const lease = this.#leases.get(grant.tenant_id)
      if (lease === undefined) continue
      const going = lease.granted(grant, reports.get(grant.tenant_id)?.used ?? 0, clock, now)
      for (const waiter of this.#left(going)) waiter.go()
      if (grant.state === 'exhausted') this.#exhaust(lease)
    }
    for (const lease of this.#leases.values()) lease.reportedMonth(response.month)
    for (const tenantId of response.recalled) {
      this.#leases.get(tenantId)?.release()
      this.#isWanted = true
    }
  }

  #exhaust(lease: Lease): void {
    for (const waiter of this.#left(lease.leaveAll())) waiter.exhausted()
  }

  #rejectAll(): void {
    this.slots.rejectAll()
    for (const lease of this.#leases.values()) for (const waiter of this.#left(lease.leaveAll())) waiter.unknown()
  }

  #left(waiters: Waiter[]): Waiter[] {
    this.#waiting -= waiters.length
    return waiters
  }
}

const admit = { taken: 'taken' } as const
const exhausted = { taken: 'exhausted' } as const
const unknown = { taken: 'unknown' } as const
const full = { taken: 'full' } as const
