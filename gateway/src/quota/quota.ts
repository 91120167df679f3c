// The limits of each tenant at this gateway: its rate, its requests of the month and its connections, in one object per
// tenant.
import type { Route, RouteLimits } from '@tenantry/contract'
import type { Rejection } from '../errors.ts'
import type { Lease } from './lease.ts'
import type { LeaseRenewer } from './lease-renewer.ts'
import {
  connectionsNotLeased,
  connectionsTaken,
  rateLimited,
  requestsNotLeased,
  requestsUsedUp,
  spendingLimitReached,
} from './quota-rejections.ts'
import { RateGate } from './rate-gate.ts'
import type { Slots } from './slots.ts'

interface QuotaOptions {
  leases: LeaseRenewer
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Returns milliseconds since 1970 by the control plane's clock. */
  controlNow: () => number
}

/** A request or a connection in the queue. One of the two functions is called, once, unless it leaves before. */
interface QueueEntry {
  go(): void
  reject(rejection: Rejection): void
}

/** The parts of the month's requests and of the rate that a request holds until it is counted. */
export interface Admission {
  /**
   * Settles the request, once.
   * @param isUsed false releases it
   * @param isRejected true also releases its part of the rate, because it reached nothing of the tenant
   */
  settle(isUsed: boolean, isRejected: boolean): void
}

export class Quota {
  readonly #options: QuotaOptions
  readonly #gates = new Map<string, TenantGate>()

  constructor(options: QuotaOptions) {
    this.#options = options
  }

  gate(route: Route): TenantGate {
    let gate = this.#gates.get(route.tenant_id)
    if (gate === undefined) {
      gate = new TenantGate(route.tenant_id, this.#options)
      gate.change(route.limits ?? noLimits)
      this.#gates.set(route.tenant_id, gate)
    }
    return gate
  }

  /** Whether all requests of the tenant are rejected now, because it has reached its spending limit. */
  isSpent(tenantId: string): boolean {
    return this.#gates.get(tenantId)?.spent !== undefined
  }

  /** Applies a change of a tenant's route. A tenant that is ready receives its first lease and slots at once. */
  changed(tenantId: string, route: Route | undefined): void {
    const isServed = route?.phase === 'ready'
    const known = this.#gates.get(tenantId)
    const gate = known ?? (isServed ? this.gate(route) : undefined)
    if (gate === undefined) return
    if (known !== undefined && route !== undefined) known.change(route.limits ?? noLimits)
    gate.serve(isServed)
    if (route !== undefined) return
    this.#options.leases.drop(tenantId, true)
    this.#gates.delete(tenantId)
  }

  /** Whether the control plane accepted the last call for leases. */
  get isSynced(): boolean {
    return this.#options.leases.isSynced
  }

  /** Whether the control plane has all counts of earlier starts of this gateway, and has ended their leases. */
  get isSettled(): boolean {
    return this.#options.leases.isSettled
  }

  /** Whether the tenant is served without the control plane. */
  isHeld(tenantId: string): boolean {
    return this.#gates.get(tenantId)?.isHeld === true
  }
}

const noLimits: RouteLimits = { requests_per_month: null, connections: null, rate: null }

export class TenantGate {
  readonly #tenantId: string
  readonly #options: QuotaOptions
  #rate: RateGate | undefined
  #lease: Lease | undefined
  readonly #slots: Slots
  /** The end of the time in which the tenant has reached its spending limit, in milliseconds since 1970; 0 for never. */
  #spentUntil = 0
  #policy = ''

  constructor(tenantId: string, options: QuotaOptions) {
    this.#tenantId = tenantId
    this.#options = options
    this.#slots = options.leases.slots.of(tenantId)
  }

  change(limits: RouteLimits): void {
    const { requests_per_month: requests, connections, rate, spending_reached_until: spentUntil } = limits
    this.#spentUntil = spentUntil === undefined ? 0 : Date.parse(spentUntil)
    const same =
      rate !== null && this.#rate?.limit.per_second === rate.per_second && this.#rate.limit.burst === rate.burst
    if (!same) this.#rate = rate === null ? undefined : new RateGate(rate)
    if (requests === null) {
      if (this.#lease !== undefined) this.#options.leases.drop(this.#tenantId, false)
      this.#lease = undefined
    } else this.#lease = this.#options.leases.lease(this.#tenantId, requests)
    this.#options.leases.slots.limit(this.#slots, connections)
    this.#policy = policyOf(limits)
  }

  serve(isServed: boolean): void {
    const { leases } = this.#options
    if (this.#lease !== undefined) leases.serve(this.#lease, isServed)
    leases.slots.serve(this.#slots, isServed)
  }

  get isHeld(): boolean {
    return this.#lease?.isHeld !== false && this.#slots.isHeld
  }

  /** The rejection of all requests of a tenant that has reached its spending limit; undefined for another tenant. */
  get spent(): Rejection | undefined {
    if (this.#spentUntil === 0) return undefined
    const wall = this.#options.controlNow()
    return wall < this.#spentUntil ? spendingLimitReached(this.#spentUntil - wall, wall) : undefined
  }

  /**
   * Admits a request.
   * @param entry creates the entry when the request has to wait
   * @returns undefined when the request is admitted; a rejection; or a function that removes the waiting request from the
   * queue
   */
  enter(entry: () => QueueEntry): Rejection | (() => void) | undefined {
    const { spent } = this
    if (spent !== undefined) return spent
    const rate = this.#rate
    const lease = this.#lease
    if (rate === undefined && lease === undefined) return undefined
    const { elapsed, leases, now: wall } = this.#options
    const now = elapsed()
    if (rate !== undefined) {
      const wait = rate.take(now)
      if (wait > 0) return rateLimited(rate.limit.per_second, rate.limit.burst, wait, wall())
    }
    if (lease === undefined) return undefined
    const { outcome, leave } = leases.take(lease, now, () => this.#waiter(lease, entry()))
    if (outcome === 'taken') return undefined
    if (outcome === 'waits' && leave !== undefined) return leave
    return outcome === 'exhausted' ? this.#usedUp(lease) : requestsNotLeased
  }

  /** The admission of a request at this moment; undefined when nothing is deducted for it. */
  get admission(): Admission | undefined {
    const lease = this.#lease
    const rate = this.#rate
    if (lease === undefined && rate === undefined) return undefined
    const term = lease?.term
    return {
      settle: (isUsed, isRejected) => {
        if (lease !== undefined && term !== undefined) this.#options.leases.settle(lease, term, isUsed)
        if (isRejected) rate?.release()
      },
    }
  }

  /**
   * Opens a long-lived connection, which holds a slot from its admission until `closed`.
   * @returns undefined when the connection is admitted; a rejection; or a function that removes the waiting connection from
   * the queue
   */
  open(entry: () => QueueEntry): Rejection | (() => void) | undefined {
    const slots = this.#slots
    const { outcome, leave } = this.#options.leases.slots.take(slots, () => {
      const queued = entry()
      return {
        go: () => queued.go(),
        exhausted: () => queued.reject(connectionsTaken(slots.limit, slots.openInAll)),
        unknown: () => queued.reject(connectionsNotLeased),
      }
    })
    if (outcome === 'taken') return undefined
    if (outcome === 'waits' && leave !== undefined) return leave
    return outcome === 'exhausted' ? connectionsTaken(slots.limit, slots.openInAll) : connectionsNotLeased
  }

  closed(): void {
    this.#options.leases.slots.close(this.#slots)
  }

  /** Appends `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers) to a list of names and values. */
  addHeaders(headers: string[]): void {
    if (this.#policy === '') return
    const now = this.#options.elapsed()
    const parts: string[] = []
    if (this.#rate !== undefined)
      parts.push(`"rate";r=${this.#rate.remaining(now)};t=${Math.ceil(this.#rate.resetIn(now) / 1_000)}`)
    const resetIn = this.#lease?.resetIn(now)
    if (this.#lease !== undefined && resetIn !== undefined) {
      parts.push(`"month";r=${Math.max(0, this.#lease.limit - this.#lease.usedInAll)};t=${Math.ceil(resetIn / 1_000)}`)
    }
    headers.push('ratelimit-policy', this.#policy)
    if (parts.length > 0) headers.push('ratelimit', parts.join(', '))
  }

  #waiter(lease: Lease, entry: QueueEntry) {
    return {
      go: () => entry.go(),
      exhausted: () => entry.reject(this.#usedUp(lease)),
      unknown: () => entry.reject(requestsNotLeased),
    }
  }

  #usedUp(lease: Lease): Rejection {
    const { elapsed, now } = this.#options
    return requestsUsedUp(lease.limit, lease.usedInAll, lease.resetIn(elapsed()) ?? 0, now())
  }
}

/** The policy header's values by the limits: an object of limits belongs to many tenants. */
const policies = new WeakMap<RouteLimits, string>()

/** Returns the policy header's value. A month has no fixed number of seconds, so its window is omitted. */
function policyOf(limits: RouteLimits): string {
  const known = policies.get(limits)
  if (known !== undefined) return known
  const { rate, requests_per_month: requests } = limits
  const parts: string[] = []
  if (rate !== null) parts.push(`"rate";q=${rate.burst};w=${Math.max(1, Math.ceil(rate.burst / rate.per_second))}`)
  if (requests !== null) parts.push(`"month";q=${requests}`)
  const policy = parts.join(', ')
  policies.set(limits, policy)
  return policy
}
