// The leases of all tenants with a monthly quota: requests more before they run out, releases what others need, and reports
// the use each second. Connection slots are renewed with the same calls.
import { internalPaths, LeaseResponse, Outage, pause, type LeaseCall } from '@tenantry/contract'
import { readResponse, postToControl, type ControlPlane } from '../control-call.ts'
import { Lease, type StoreLease, type MonthClock } from './lease.ts'
import type { PersistedFile, PersistedLease, PersistedSlots } from './persisted-lease.ts'
import { enterQueue } from './enter-queue.ts'
import { firstToReport } from './report-order.ts'
import { SlotRenewer } from './slot-renewer.ts'
import type { TakeOutcome } from './take-outcome.ts'
import type { Waiter } from './waiter-queue.ts'

interface LeaseRenewerOptions {
  control: ControlPlane
  /** The gateway's stable name and the ID of this start, as in usage pushes. */
  source: string
  boot: string
  /** Lists earlier boots whose counts are not all acknowledged. */
  unfinished: () => readonly string[]
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Returns the current time in milliseconds since 1970. */
  now: () => number
  /** The file that persists remaining leases for the next boot. */
  file: PersistedFile<PersistedLease>
  slotFile: PersistedFile<PersistedSlots>
  onError: (error: Error) => void
  /** The maximum number of requests that wait for a lease: of one tenant, and in total. */
  waitingPerTenant: number
  waiting: number
  /**
   * Milliseconds: the maximum wait of a request, the time between two calls when nothing is urgent, and the timeout of one
   * call.
   */
  maxWait?: number
  interval?: number
  timeout?: number
}

const reportsPerCall = 500
/**
 * Milliseconds between two calls while other gateways release leases, or after a call that granted fewer than are waited
 * for.
 */
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
  /** The time before which the control plane is not called again after a failure. */
  #notBefore = -Infinity
  /** The time of the first failure of the current outage. */
  #failingSince: number | undefined
  readonly #outage = new Outage()
  #isSynced = false
  #closed = false
  /** Whether the counts of all earlier boots are acknowledged. */
  #isSettled = false

  constructor(options: LeaseRenewerOptions) {
    this.#options = options
    this.#maxWait = options.maxWait ?? 5_000
    this.#interval = options.interval ?? 1_000
    this.#timeout = options.timeout ?? 2_000
    const { waiting, waitingPerTenant, elapsed, slotFile: file } = options
    const isUnavailable = (now: number) => this.#closed || this.#isCutOff(now)
    this.slots = new SlotRenewer({
      waiting,
      waitingPerTenant,
      elapsed,
      file,
      maxWait: this.#maxWait,
      want: () => this.#want(),
      isUnavailable,
    })
  }

  /** Whether the control plane accepted the last call. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Whether the control plane accepted a call that reported no earlier boot with unacknowledged counts. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Restores the leases that an earlier boot has persisted. */
  load(): void {
    const { file, now, elapsed } = this.#options
    const [wallNow, monotonicNow] = [now(), elapsed()]
    for (const persisted of file.load(({ ends_at: endsAt }) => endsAt > wallNow)) {
      const lease = this.#createLease(persisted.tenant_id, persisted.limit)
      lease.inherit(
        persisted,
        { month: persisted.month, endsAt: monotonicNow + persisted.ends_at - wallNow, wall: () => undefined },
        monotonicNow,
      )
    }
    this.slots.load()
  }

  /**
   * Returns the lease of a tenant whose plan allows `limit` requests a month. A tenant has one lease as long as it is
   * known.
   */
  lease(tenantId: string, limit: number): Lease {
    let lease = this.#leases.get(tenantId)
    if (lease === undefined) {
      lease = this.#createLease(tenantId, limit)
    } else if (lease.limit !== limit) lease.changeLimit(limit)
    return lease
  }

  /** Notes whether the tenant is served. For other tenants nothing is requested in advance. */
  serve(lease: Lease, isServed: boolean): void {
    lease.serve(isServed)
    if (lease.isLow) this.#want()
  }

  /** Drops the lease of a tenant that was deleted or no longer has a quota. */
  drop(tenantId: string, isDeleted: boolean): void {
    const lease = this.#leases.get(tenantId)
    if (lease === undefined) return
    lease.release()
    if (isDeleted) this.#leases.delete(tenantId)
    for (const waiter of this.#dequeue(lease.admitAll())) waiter.go()
  }

  /**
   * Takes one request of the lease.
   * @param now milliseconds, monotonic
   * @param waiter creates the waiter when the request has to wait
   */
  take(lease: Lease, now: number, waiter: () => Waiter): { outcome: TakeOutcome; leave?: () => void } {
    if (lease.waiters.size === 0 && lease.take(now)) {
      if (lease.isLow) this.#want()
      return admit
    }
    if (lease.isExhausted(now) || (this.#isWithoutControl && lease.state === 'exhausted')) return exhausted
    if (this.#closed || this.#isCutOff(now)) return unknown
    if (this.#waiting >= this.#options.waiting || lease.waiters.size >= this.#options.waitingPerTenant) return full
    this.#waiting++
    const leave = enterQueue(waiter(), {
      waiters: lease.waiters,
      maxWait: this.#maxWait,
      isExhausted: () => lease.state === 'exhausted',
      onLeave: () => this.#waiting--,
    })
    this.#want()
    return { outcome: 'waits', leave }
  }

  /** Settles an admitted request, as `Lease.settle` does. */
  settle(lease: Lease, term: object, isUsed: boolean): void {
    for (const waiter of this.#dequeue(lease.settle(term, isUsed))) waiter.go()
  }

  /** Calls the control plane until aborted, then releases everything. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const isStopped = () => signal.aborted
    while (!isStopped()) {
      const next =
        this.#isSettled && this.#leases.size === 0 && this.slots.isIdle ? 'when wanted' : await this.#call(false)
      if (isStopped()) break
      if (next === 'soon') await pause(pendingInterval, signal)
      else await this.#waitForNext(signal)
    }
    this.#closed = true
    this.#rejectAll()
    if (this.#leases.size === 0 && this.slots.isIdle) return
    // Released leases are lost to the next boot, even when the control plane does not receive the release.
    await this.#call(false)
    for (const lease of this.#leases.values()) {
      if (this.#failingSince !== undefined) lease.storeFree()
      else lease.release()
    }
    if (this.#failingSince !== undefined) return
    this.slots.releaseAll()
    await this.#call(true)
  }

  #createLease(tenantId: string, limit: number): Lease {
    const { file, boot, now, elapsed } = this.#options
    const store: StoreLease = ({ endsAt, owner, ...remaining }) =>
      file.write({ tenant_id: tenantId, ...remaining, ends_at: now() + endsAt - elapsed(), owner: owner ?? boot })
    const lease = new Lease(tenantId, limit, store)
    this.#leases.set(tenantId, lease)
    return lease
  }

  /** Whether the control plane currently cannot grant more than was last known. */
  get #isWithoutControl(): boolean {
    return this.#closed || this.#failingSince !== undefined
  }

  #isCutOff(now: number): boolean {
    return this.#failingSince !== undefined && now - this.#failingSince >= this.#maxWait
  }

  #want(): void {
    this.#isWanted = true
    this.#wake?.()
  }

  /** Waits until a call is wanted, or the interval is over. */
  async #waitForNext(signal: AbortSignal): Promise<void> {
    if (!this.#isWanted || this.#options.elapsed() < this.#notBefore) {
      const wanted = new AbortController()
      this.#wake = () => {
        if (this.#options.elapsed() >= this.#notBefore) wanted.abort()
      }
      await pause(this.#interval, AbortSignal.any([signal, wanted.signal]))
      this.#wake = undefined
    }
    // The requests of this turn of the event loop are part of the same call.
    await new Promise((resolve) => setImmediate(resolve))
  }

  /**
   * Calls the control plane.
   * @returns when waiting requests need the next call
   */
  async #call(stopping: boolean): Promise<'soon' | 'when wanted'> {
    const { control, elapsed, source, boot, unfinished, onError } = this.#options
    this.#isWanted = false
    const reportedLeases = this.#due()
    const reports = reportedLeases.map((lease) => lease.report())
    // Reported leases move to the end, so that those that always change do not keep others from being reported.
    for (const lease of reportedLeases) {
      this.#leases.delete(lease.tenantId)
      this.#leases.set(lease.tenantId, lease)
    }
    const slots = this.slots.reports(reportsPerCall)
    const call = { source, boot, sequence: ++this.#sequence, unfinished: [...unfinished()], stopping, reports, slots }
    const sentAt = elapsed()
    let isPending: boolean
    try {
      const response = await readResponse(
        LeaseResponse,
        await postToControl(control, internalPaths.leases, { timeoutMs: this.#timeout, body: call }),
      )
      if (!response.accepted)
        throw new Error(`The leases of ${source} were ended, because another gateway has the same name.`)
      this.#notBefore = -Infinity
      this.#failingSince = undefined
      this.#isSynced = true
      this.#outage.over()
      this.#isSettled = call.unfinished.length === 0
      for (const lease of reportedLeases) lease.reportAccepted()
      this.#apply(response, call, sentAt)
      isPending = this.slots.apply(response, slots)
    } catch (cause) {
      for (const lease of reportedLeases) lease.changed = true
      this.slots.failed(slots)
      const now = elapsed()
      if (this.#outage.failed(now)) onError(new Error("Tenants' requests could not be leased.", { cause }))
      this.#failingSince ??= now
      this.#isSynced = false
      this.#notBefore = now + this.#interval
      // A control plane that is restarting is back soon, so requests may wait for `maxWait` before they are rejected.
      for (const lease of this.#leases.values()) if (lease.state === 'exhausted') this.#exhaust(lease)
      if (this.#isCutOff(now)) this.#rejectAll()
      else if (this.#waiting + this.slots.waiting > 0) this.#isWanted = true
      return 'when wanted'
    }
    isPending ||= reportedLeases.some((lease) => lease.state === 'pending' && lease.waiters.size > 0)
    const isMore = reportedLeases.length === reportsPerCall || slots.length === reportsPerCall
    if (!isPending && (this.#waiting + this.slots.waiting > 0 || isMore)) this.#isWanted = true
    return isPending ? 'soon' : 'when wanted'
  }

  /** Returns the leases to report in the next call. */
  #due(): readonly Lease[] {
    const due = [...this.#leases.values()].filter((lease) => lease.isLow || lease.changed)
    return firstToReport(due, reportsPerCall)
  }

  #apply(response: LeaseResponse, call: LeaseCall, sentAt: number): void {
    const now = this.#options.elapsed()
    const wallAtSending = Date.parse(response.now)
    const clock: MonthClock = {
      month: response.month,
      // The response was made after the call was sent, so the month ends here a little early rather than late.
      endsAt: sentAt + Date.parse(response.resets_at) - wallAtSending,
      wall: (at) => wallAtSending + at - sentAt,
    }
    const reports = new Map(call.reports.map((report) => [report.tenant_id, report]))
    for (const grant of response.grants) {
      const lease = this.#leases.get(grant.tenant_id)
      if (lease === undefined) continue
      const going = lease.granted(grant, reports.get(grant.tenant_id)?.used ?? 0, clock, now)
      for (const waiter of this.#dequeue(going)) waiter.go()
      if (grant.state === 'exhausted') this.#exhaust(lease)
    }
    for (const lease of this.#leases.values()) lease.checkMonth(response.month)
    for (const tenantId of response.recalled) {
      this.#leases.get(tenantId)?.release()
      this.#isWanted = true
    }
  }

  #exhaust(lease: Lease): void {
    for (const waiter of this.#dequeue(lease.leaveAll())) waiter.exhausted()
  }

  #rejectAll(): void {
    this.slots.rejectAll()
    for (const lease of this.#leases.values()) for (const waiter of this.#dequeue(lease.leaveAll())) waiter.unknown()
  }

  #dequeue(waiters: Waiter[]): Waiter[] {
    this.#waiting -= waiters.length
    return waiters
  }
}

const admit = { outcome: 'taken' } as const
const exhausted = { outcome: 'exhausted' } as const
const unknown = { outcome: 'unknown' } as const
const full = { outcome: 'full' } as const
