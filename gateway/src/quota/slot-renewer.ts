// The connection slots of all tenants with a quota of long-lived connections: which connections may open or wait, and the
// reports of slots in the calls for leases.
import type { LeaseResponse, SlotGrant, SlotReport } from '@tenantry/contract'
import type { Waiter } from './waiter-queue.ts'
import type { TakeOutcome } from './take-outcome.ts'
import type { PersistedFile, PersistedSlots } from './persisted-lease.ts'
import { enterQueue } from './enter-queue.ts'
import { firstToReport } from './report-order.ts'
import { Slots } from './slots.ts'

interface SlotRenewerOptions {
  /** The file that persists held slots for the next boot. */
  file: PersistedFile<PersistedSlots>
  /** The maximum number of connections that wait: of one tenant, and in total. */
  waitingPerTenant: number
  waiting: number
  /** The maximum wait of a connection in milliseconds. */
  maxWait: number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Requests a call of the control plane. */
  want: () => void
  /** Whether the control plane does not respond, and no connection should wait for it. */
  isUnavailable: (now: number) => boolean
}

export class SlotRenewer {
  readonly #options: SlotRenewerOptions
  /** Slots of tenants with open or waiting connections, held slots or changes to report. */
  readonly #active = new Map<string, Slots>()
  /** The number of held slots in the file, by tenant. */
  readonly #storedHeld = new Map<string, number>()
  #waiting = 0
  #hasResponse = false

  constructor(options: SlotRenewerOptions) {
    this.#options = options
  }

  /** Restores the slots that an earlier boot has persisted. */
  load(): void {
    for (const { tenant_id: id, limit, held } of this.#options.file.load()) {
      const slots = new Slots(id)
      slots.inherit(held, limit)
      this.#active.set(id, slots)
      this.#storedHeld.set(id, held)
    }
  }

  /** Releases all slots before the last call, which reports the release. The next boot inherits none. */
  releaseAll(): void {
    for (const slots of this.#active.values()) {
      slots.releaseAll()
      this.#store(slots)
    }
  }

  /** Whether there is nothing to report and nothing to release. */
  get isIdle(): boolean {
    return this.#active.size === 0
  }

  get waiting(): number {
    return this.#waiting
  }

  of(tenantId: string): Slots {
    return this.#active.get(tenantId) ?? new Slots(tenantId)
  }

  /**
   * Changes the limit.
   * @param limit the plan's limit; null without one
   */
  limit(slots: Slots, limit: number | null): void {
    for (const waiter of this.#dequeue(slots.changeLimit(limit ?? Infinity, this.#options.elapsed()))) waiter.go()
    this.#store(slots)
    if (!slots.changed || (slots.open === 0 && slots.held === 0)) return
    this.#active.set(slots.tenantId, slots)
    this.#options.want()
  }

  /** Notes whether the tenant is served. For other tenants nothing is requested in advance. */
  serve(slots: Slots, isServed: boolean): void {
    slots.serve(isServed)
    if (!slots.isLow) return
    this.#active.set(slots.tenantId, slots)
    this.#options.want()
  }

  /**
   * Takes a slot for a connection, which is then open.
   * @param waiter creates the waiter when the connection has to wait; its `go` reports that the connection is open
   */
  take(slots: Slots, waiter: () => Waiter): { outcome: TakeOutcome; leave?: () => void } {
    const { elapsed, isUnavailable, waiting, waitingPerTenant, maxWait, want } = this.#options
    const now = elapsed()
    if (slots.waiters.size === 0 && slots.take(now)) {
      if (slots.limit !== Infinity) this.#active.set(slots.tenantId, slots)
      if (slots.isLow) want()
      return { outcome: 'taken' }
    }
    if (slots.isExhausted(now)) return { outcome: 'exhausted' }
    if (isUnavailable(now)) return { outcome: 'unknown' }
    if (this.#waiting >= waiting || slots.waiters.size >= waitingPerTenant) return { outcome: 'full' }
    this.#active.set(slots.tenantId, slots)
    this.#waiting++
    const leave = enterQueue(waiter(), {
      waiters: slots.waiters,
      maxWait,
      isExhausted: () => slots.state === 'exhausted',
      onLeave: () => this.#waiting--,
    })
    want()
    return { outcome: 'waits', leave }
  }

  close(slots: Slots): void {
    const next = slots.close()
    if (next !== undefined) for (const waiter of this.#dequeue([next])) waiter.go()
    if (slots.isRecalled) this.#options.want()
  }

  /** Makes up to `max` reports. They release unneeded slots while the control plane responds. */
  reports(max: number): SlotReport[] {
    const now = this.#options.elapsed()
    const due = [...this.#active.values()].filter((slots) => slots.hasChanges(now, this.#hasResponse))
    const slotsToReport = firstToReport(due, max)
    return slotsToReport.map((slots) => {
      const report = slots.report(now, this.#hasResponse)
      // Reported slots move to the end, so that those that always change do not keep others from being reported.
      this.#active.delete(slots.tenantId)
      this.#active.set(slots.tenantId, slots)
      // Stored before another gateway can receive the released slots.
      this.#store(slots)
      return report
    })
  }

  /**
   * Applies the response.
   * @returns whether waiting connections need another call soon
   */
  apply(response: LeaseResponse, reports: readonly SlotReport[]): boolean {
    const now = this.#options.elapsed()
    this.#hasResponse = true
    const reportsByTenant = new Map(reports.map((report) => [report.tenant_id, report]))
    let isPending = false
    for (const grant of response.slots) {
      const slots = this.#active.get(grant.tenant_id)
      if (slots === undefined) continue
      const going = this.#dequeue(slots.granted(grant, ownOpen(grant, reportsByTenant.get(grant.tenant_id)), now))
      this.#store(slots)
      for (const waiter of going) waiter.go()
      if (grant.state === 'exhausted') for (const waiter of this.#dequeue(slots.leaveAll())) waiter.exhausted()
      isPending ||= grant.state === 'pending' && slots.waiters.size > 0
    }
    const recalled = new Set(response.slots_recalled)
    for (const slots of this.#active.values()) {
      slots.isRecalled = recalled.has(slots.tenantId)
      if (slots.isRecalled && slots.held > slots.open) this.#options.want()
      const isOver = slots.open === 0 && slots.held === 0 && !slots.isLow && !slots.changed
      if (isOver || (slots.limit === Infinity && reportsByTenant.has(slots.tenantId)))
        this.#active.delete(slots.tenantId)
    }
    return isPending
  }

  /** Notes that the reports may not have arrived and must be repeated. */
  failed(reports: readonly SlotReport[]): void {
    this.#hasResponse = false
    for (const { tenant_id: id } of reports) {
      const slots = this.#active.get(id)
      if (slots !== undefined) slots.changed = true
    }
  }

  /** Rejects the waiting connections of a tenant that is no longer served. */
  reject(tenantId: string): void {
    for (const waiter of this.#dequeue(this.#active.get(tenantId)?.leaveAll() ?? [])) waiter.unknown()
  }

  rejectAll(): void {
    for (const slots of this.#active.values()) for (const waiter of this.#dequeue(slots.leaveAll())) waiter.unknown()
  }

  #store({ tenantId, limit, held }: Slots): void {
    if ((this.#storedHeld.get(tenantId) ?? 0) === held) return
    if (held === 0) this.#storedHeld.delete(tenantId)
    else this.#storedHeld.set(tenantId, held)
    this.#options.file.write({ tenant_id: tenantId, limit: limit === Infinity ? 0 : limit, held })
  }

  #dequeue(waiters: Waiter[]): Waiter[] {
    this.#waiting -= waiters.length
    return waiters
  }
}

/** Returns how many of a grant's open connections are this gateway's: those that it reported, and those that waited. */
function ownOpen({ held }: SlotGrant, report: SlotReport | undefined): number {
  if (report === undefined) return 0
  return report.open + Math.min(report.waiting, Math.max(0, (held ?? report.keep) - report.keep))
}
