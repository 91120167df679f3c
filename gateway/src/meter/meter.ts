// What the forwarding side tells about a tenant's requests, turned into counters.
import { latencyBounds, type Activity, type TenantActivity } from '@tenantry/contract'
import type { Group } from '../resolve/group.ts'
import type { Breakdown, CounterStore } from './counter-store.ts'

/** The counting hand of one tenant. */
export interface TenantMeter {
  /**
   * Counts a request that the tenant's runtime has served or may have served; called once for each, before its answer
   * ends. `status` is the HTTP status the client got or would have got, `milliseconds` the time from the request's head
   * to the answer's.
   */
  request(group: Group, method: string, status: number, milliseconds: number): void
  /** Instead of `request`: rejected before anything of the tenant was touched, which uses no quota and costs nothing. */
  rejected(group: Group, method: string, status: number): void
  /** Instead of `request`: refused for a quota or a rate limit, which uses no quota and costs nothing. */
  refused(group: Group): void
  /** Bytes of an answer's body, an upgraded connection or an SQL session, handed to the client's connection. */
  egress(group: Group, bytes: number): void
  /** A connection that stays (WebSocket or other upgrade, event stream, SQL session) was opened; ends with `closed`. */
  opened(): void
  closed(): void
  /** Something is under way for the tenant (a request, an upgraded connection, an SQL session); ends with `ended`. */
  began(): void
  ended(): void
  /** Goes on once all that was counted until now will survive the gateway's death: within this turn of the event loop. */
  kept(goOn: () => void): void
}

interface MeterOptions {
  store: CounterStore
  /** Milliseconds since 1970. */
  now: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** See TenantMeter. Without a journal, at once. */
  kept?: (goOn: () => void) => void
}

export class Meter {
  readonly #options: MeterOptions
  readonly #since: number
  readonly #tenants = new Map<string, MeteredTenant>()
  /** Tenants with connections that stay. */
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

  /** A tenant that is gone needs no hand; its counters stay until they are pushed. */
  evict(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  /** The start, and the tenants of which there was anything since. */
  activity(): Activity {
    const tenants = Object.fromEntries([...this.#tenants].map(([id, tenant]) => [id, tenant.activity()]))
    return { since: new Date(this.#since).toISOString(), tenants }
  }

  /** To be called each second: connections that stay open count in every hour they see, for as long as they see of it. */
  tick(): void {
    for (const tenant of this.#connected) tenant.connected()
  }
}

class MeteredTenant implements TenantMeter {
  readonly #id: string
  readonly #options: MeterOptions
  readonly #connected: Set<MeteredTenant>
  readonly kept: (goOn: () => void) => void
  /** Connections that stay, and until when their time is counted (whole milliseconds, monotonic). */
  #open = 0
  #countedUntil = 0
  #inProgress = 0
  #lastAt: number

  constructor(id: string, options: MeterOptions, connected: Set<MeteredTenant>) {
    this.#id = id
    this.#options = options
    this.#lastAt = options.now()
    this.#connected = connected
    this.kept = options.kept ?? ((goOn) => goOn())
  }

  request(group: Group, method: string, status: number, milliseconds: number): void {
    const { store } = this.#options
    store.add(this.#id, 'requests', breakdownOf(group, method, status), 1)
    store.add(this.#id, 'latency', { group, bucket: bucketOf(milliseconds) }, 1)
  }

  rejected(group: Group, method: string, status: number): void {
    this.#options.store.add(this.#id, 'rejected_requests', breakdownOf(group, method, status), 1)
  }

  refused(group: Group): void {
    this.#options.store.add(this.#id, 'refused_requests', { group }, 1)
  }

  egress(group: Group, bytes: number): void {
    this.#options.store.add(this.#id, 'egress_bytes', { group }, bytes)
  }

  opened(): void {
    if (this.#open === 0) {
      this.#connected.add(this)
      this.#countedUntil = Math.round(this.#options.elapsed())
    }
    this.#countTime()
    this.#open++
    this.#countPeak()
  }

  closed(): void {
    this.#countTime()
    if (--this.#open === 0) this.#connected.delete(this)
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
    this.#options.store.atLeast(this.#id, 'connections_peak', {}, this.#open)
  }

  /** In the hour in which it ends: with a tick each second an hour is right to the second. */
  #countTime(): void {
    const until = Math.round(this.#options.elapsed())
    this.#options.store.add(this.#id, 'connection_milliseconds', {}, this.#open * (until - this.#countedUntil))
    this.#countedUntil = until
  }
}

/** Methods counted by name; the rest of HTTP's registry counts together, so that a client cannot multiply counters. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

function breakdownOf(group: Group, method: string, status: number): Breakdown {
  return { group, method: knownMethods.has(method) ? method : 'OTHER', statusClass: classOf(status) }
}

/** A switch of protocols is a success. */
function classOf(status: number): string {
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

const buckets = latencyBounds.map((bound) => ({ bound, name: String(bound) }))

function bucketOf(milliseconds: number): string {
  for (const { bound, name } of buckets) if (milliseconds <= bound) return name
  return 'inf'
}
