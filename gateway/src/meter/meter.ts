// Turns what the forwarding side reports about tenants' requests into counters.
import { latencyBounds, type Activity, type TenantActivity } from '@tenantry/contract'
import type { Group } from '../resolve/group.ts'
import type { RequestTotals, StatusClass } from '../monitor/request-totals.ts'
import type { Breakdown, CounterStore } from './counter-store.ts'

/** The meter of one tenant. */
export interface TenantMeter {
  /**
   * Counts a request that the tenant's runtime has served or may have served. Called once for each, before its response
   * ends.
   * `status` is the HTTP status that the client received or would have received, `milliseconds` the time from the request's
   * head to the response's.
   */
  request(group: Group, method: string, status: number, milliseconds: number): void
  /**
   * Counts, instead of `request`, a request that was rejected before it reached anything of the tenant. It uses no quota
   * and is free.
   */
  rejected(group: Group, method: string, status: number): void
  /** Counts, instead of `request`, a request that a quota or a rate limit rejected. It uses no quota and is free. */
  quotaRejected(group: Group): void
  /**
   * Counts bytes of a response's body, an upgraded connection or an SQL session that are written to the client's
   * connection.
   */
  egress(group: Group, bytes: number): void
  /**
   * Notes that a long-lived connection (WebSocket or other upgrade, event stream, SQL session) was opened. It ends with
   * `closed`.
   */
  opened(): void
  closed(): void
  /**
   * Notes that work for the tenant (a request, an upgraded connection, an SQL session) is in progress. It ends with
   * `ended`.
   */
  began(): void
  ended(): void
  /** The amount of work in progress. */
  readonly inProgress: number
  /**
   * Calls the function when everything counted so far will survive a crash of the gateway, within this turn of the event
   * loop.
   */
  whenWritten(next: () => void): void
}

interface MeterOptions {
  store: CounterStore
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Implements `whenWritten` of TenantMeter. Without a journal, functions are called at once. */
  whenWritten?: (next: () => void) => void
  /** The totals of all tenants, for the metrics. */
  totals?: Omit<RequestTotals, 'register'>
}

export class Meter {
  readonly #options: MeterOptions
  readonly #since: number
  readonly #tenants = new Map<string, MeteredTenant>()
  /** Tenants with long-lived connections. */
  readonly #connected = new Set<MeteredTenant>()

  constructor(options: MeterOptions) {
    this.#options = options
    this.#since = options.now()
  }

  tenant(tenantId: string): TenantMeter {
    let tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) {
      tenant = new MeteredTenant(tenantId, this.#options, this.#connected)
      this.#tenants.set(tenantId, tenant)
    }
    return tenant
  }

  /** Evicts a deleted tenant's meter. Its counters stay until they are pushed. */
  evict(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  /** Reports the gateway's start, and the tenants that were active since. */
  activity(): Activity {
    const tenants = Object.fromEntries([...this.#tenants].map(([id, tenant]) => [id, tenant.activity()]))
    return { since: new Date(this.#since).toISOString(), tenants }
  }

  /** The greatest amount of work in progress for one tenant. */
  get maxInProgress(): number {
    let max = 0
    for (const tenant of this.#tenants.values()) max = Math.max(max, tenant.inProgress)
    return max
  }

  /** Counts the time of long-lived connections, in every hour in which they are open. Called each second. */
  tick(): void {
    for (const tenant of this.#connected) tenant.connected()
  }
}

class MeteredTenant implements TenantMeter {
  readonly #id: string
  readonly #options: MeterOptions
  readonly #connected: Set<MeteredTenant>
  readonly whenWritten: (next: () => void) => void
  /** The number of long-lived connections, and the time until which theirs is counted (whole milliseconds, monotonic). */
  #open = 0
  #accountedUntil = 0
  #inProgress = 0
  #lastAt: number

  constructor(id: string, options: MeterOptions, connected: Set<MeteredTenant>) {
    this.#id = id
    this.#options = options
    this.#lastAt = options.now()
    this.#connected = connected
    this.whenWritten = options.whenWritten ?? ((next) => next())
  }

  request(group: Group, method: string, status: number, milliseconds: number): void {
    const { store, totals } = this.#options
    totals?.served(classOf(status), milliseconds)
    store.add(this.#id, 'requests', breakdownOf(group, method, status), 1)
    store.add(this.#id, 'latency', { group, bucket: bucketOf(milliseconds) }, 1)
  }

  rejected(group: Group, method: string, status: number): void {
    this.#options.totals?.rejected(classOf(status))
    this.#options.store.add(this.#id, 'rejected_requests', breakdownOf(group, method, status), 1)
  }

  quotaRejected(group: Group): void {
    this.#options.totals?.refused()
    this.#options.store.add(this.#id, 'refused_requests', { group }, 1)
  }

  egress(group: Group, bytes: number): void {
    this.#options.totals?.sent(bytes)
    this.#options.store.add(this.#id, 'egress_bytes', { group }, bytes)
  }

  opened(): void {
    if (this.#open === 0) {
      this.#connected.add(this)
      this.#accountedUntil = Math.round(this.#options.elapsed())
    }
    this.#countTime()
    this.#open++
    this.#countPeak()
  }

  closed(): void {
    this.#countTime()
    if (--this.#open === 0) this.#connected.delete(this)
  }

  get inProgress(): number {
    return this.#inProgress
  }

  began(): void {
    this.#inProgress++
    this.#lastAt = this.#options.now()
  }

  ended(): void {
    this.#inProgress--
    this.#lastAt = this.#options.now()
  }

  activity(): TenantActivity {
    return { last_request_at: new Date(this.#lastAt).toISOString(), open: this.#inProgress }
  }

  connected(): void {
    this.#countPeak()
    this.#countTime()
  }

  #countPeak(): void {
    this.#options.store.addMaximum(this.#id, 'connections_peak', {}, this.#open)
  }

  /** Counts the open connections' time in the current hour. With a tick each second, an hour is exact to the second. */
  #countTime(): void {
    const until = Math.round(this.#options.elapsed())
    this.#options.store.add(this.#id, 'connection_milliseconds', {}, this.#open * (until - this.#accountedUntil))
    this.#accountedUntil = until
  }
}

/** Methods that are counted by name. All others count together, so that a client cannot create counters. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

function breakdownOf(group: Group, method: string, status: number): Breakdown {
  return { group, method: knownMethods.has(method) ? method : 'OTHER', statusClass: classOf(status) }
}

/** A switch of protocols is a success. */
function classOf(status: number): StatusClass {
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

const buckets = latencyBounds.map((bound) => ({ bound, name: String(bound) }))

function bucketOf(milliseconds: number): string {
  for (const { bound, name } of buckets) if (milliseconds <= bound) return name
  return 'inf'
}
