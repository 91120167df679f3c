// Slots of all tenants with a quota of connections that stay: who may open one, who waits, and what the calls about leases
// say of them.
import type { LeaseResponse, SlotReport } from '@tenantry/contract'
import type { Waiter } from './lease.ts'
import type { Taken } from './taken.ts'
import type { PersistedFile, PersistedSlots } from './persisted-lease.ts'
import { enterQueue } from './queue-waiter.ts'
import { Slots } from './slots.ts'

interface SlotRenewerOptions {
  /** Where what is held is kept for the next incarnation. */
  file: PersistedFile<PersistedSlots>
  /** Connections that wait at once: of one tenant, and in all. */
  waitingPerTenant: number
  waiting: number
  /** Milliseconds for which one waits at most. */
  maxWait: number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** The control plane should be called soon. */
  want: () => void
  /** Whether it does not answer, and nobody should wait for it. */
  isAway: (now: number) => boolean
}

export class SlotRenewer {
  readonly #options: SlotRenewerOptions
  /** Those of which something is open, held, awaited or to be told. */
  readonly #active = new Map<string, Slots>()
  /** What the file says of each. */
  readonly #stored = new Map<string, number>()
  #waiting = 0
  #response = false

  constructor(options: SlotRenewerOptions) {
    this.#options = options
  }

  /** Goes on with what an earlier incarnation has left. */
  load(): void {
    for (const { tenant_id: id, limit, held } of this.#options.file.load()) {
      const slots = new Slots(id)
      slots.inherit(held, limit)
      this.#active.set(id, slots)
      this.#stored.set(id, held)
    }
  }

  /** For the last call, which says so; the next incarnation finds nothing. */
  releaseAll(): void {
    for (const slots of this.#active.values()) {
      slots.releaseAll()
      this.#keep(slots)
    }
  }

  /** Whether there is nothing to tell and nothing to give back. */
  get isIdle(): boolean {
    return this.#active.size === 0
  }

  get waiting(): number {
    return this.#waiting
  }

  of(tenantId: string): Slots {
    return this.#active.get(tenantId) ?? new Slots(tenantId)
  }

  /** @param limit of the plan; null: none */
  limit(slots: Slots, limit: number | null): void {
    for (const waiter of this.#left(slots.changeLimit(limit ?? Infinity, this.#options.elapsed()))) waiter.go()
    this.#keep(slots)
    if (!slots.changed || (slots.open === 0 && slots.held === 0)) return
    this.#active.set(slots.tenantId, slots)
    this.#options.want()
  }

  /** The tenant is served from now on, or no longer: then nothing is asked for in advance. */
  serve(slots: Slots, isServed: boolean): void {
    slots.serve(isServed)
    if (!slots.isLow) return
    this.#active.set(slots.tenantId, slots)
    this.#options.want()
  }

  /** @param waiter is made when the connection has to wait; told to go, it is open */
  take(slots: Slots, waiter: () => Waiter): { taken: Taken; leave?: () => void } {
    const { elapsed, isAway, waiting, waitingPerTenant, maxWait, want } = this.#options
    const now = elapsed()
    if (slots.waiters.size === 0 && slots.take(now)) {
      if (slots.limit !== Infinity) this.#active.set(slots.tenantId, slots)
      if (slots.isLow) want()
      return { taken: 'taken' }
    }
    if (slots.isExhausted(now)) return { taken: 'exhausted' }
    if (isAway(now)) return { taken: 'unknown' }
    if (this.#waiting >= waiting || slots.waiters.size >= waitingPerTenant) return { taken: 'full' }
    this.#active.set(slots.tenantId, slots)
    this.#waiting++
    const leave = enterQueue(waiter(), {
      waiters: slots.waiters,
      maxWait,
      isExhausted: () => slots.state === 'exhausted',
      onRemaining: () => this.#waiting--,
    })
    want()
    return { taken: 'waits', leave }
  }

  close(slots: Slots): void {
    const next = slots.close()
    if (next !== undefined) for (const waiter of this.#left([next])) waiter.go()
    if (slots.isRecalled) this.#options.want()
  }

  /** At most so many; what is not needed is given back with them while the control plane answers. */
  reports(max: number): SlotReport[] {
    const now = this.#options.elapsed()
    const reported = [...this.#active.values()].filter((slots) => slots.hasChanges(now, this.#response)).slice(0, max)
    return reported.map((slots) => {
      const report = slots.report(now, this.#response)
      // At the end, so that those who always have news keep nobody else from being told of.
      this.#active.delete(slots.tenantId)
      this.#active.set(slots.tenantId, slots)
      // Before it is somebody else's.
      this.#keep(slots)
      return report
    })
  }

  /** @returns whether those who wait need another call soon */
  apply(response: LeaseResponse, reports: readonly SlotReport[]): boolean {
    const now = this.#options.elapsed()
    this.#response = true
    const reported = new Map(reports.map((report) => [report.tenant_id, report]))
    let isPending = false
    for (const grant of response.slots) {
      const slots = this.#active.get(grant.tenant_id)
      if (slots === undefined) continue
      const going = this.#left(slots.granted(grant, reported.get(grant.tenant_id)?.open ?? 0, now))
      this.#keep(slots)
      for (const waiter of going) waiter.go()
      if (grant.state === 'exhausted') for (const waiter of this.#left(slots.leaveAll())) waiter.exhausted()
      isPending ||= grant.state === 'pending' && slots.waiters.size > 0
    }
    const recalled = new Set(response.slots_recalled)
    for (const slots of this.#active.values()) {
      slots.isRecalled = recalled.has(slots.tenantId)
      if (slots.isRecalled && slots.held > slots.open) this.#options.want()
      const isOver = slots.open === 0 && slots.held === 0 && !slots.isLow && !slots.changed
      if (isOver || (slots.limit === Infinity && reported.has(slots.tenantId))) this.#active.delete(slots.tenantId)
    }
    return isPending
  }

  /** What was told must be told again. */
  failed(reports: readonly SlotReport[]): void {
    this.#response = false
    for (const { tenant_id: id } of reports) {
      const slots = this.#active.get(id)
      if (slots !== undefined) slots.changed = true
    }
  }

  /** Nobody waits for a tenant that is not served any longer. */
  reject(tenantId: string): void {
    for (const waiter of this.#left(this.#active.get(tenantId)?.leaveAll() ?? [])) waiter.unknown()
  }

  rejectAll(): void {
    for (const slots of this.#active.values()) for (const waiter of this.#left(slots.leaveAll())) waiter.unknown()
  }

  #keep({ tenantId, limit, held }: Slots): void {
    if ((this.#stored.get(tenantId) ?? 0) === held) return
    if (held === 0) this.#stored.delete(tenantId)
    else this.#stored.set(tenantId, held)
    this.#options.file.write({ tenant_id: tenantId, limit: limit === Infinity ? 0 : limit, held })
  }

  #left(waiters: Waiter[]): Waiter[] {
    this.#waiting -= waiters.length
    return waiters
  }
}
