// What the forwarding side tells about a tenant's requests, turned into counters.
import type { Activity, TenantActivity } from '@tenantry/contract'
import type { Group } from '../resolve/group.ts'
import type { CounterStore } from './counter-store.ts'

/** The counting hand of one tenant. */
export interface TenantMeter {
  /** Once for each request, before its answer ends. `status` is the HTTP status the client got or would have got. */
  request(group: Group, method: string, status: number): void
  /** In its place, for a request that was refused for a quota or a rate. */
  refused(group: Group): void
  /** Bytes of an answer's body, an upgraded connection or an SQL session, handed to the client's connection. */
  egress(group: Group, bytes: number): void
  /** A connection that stays (WebSocket or other upgrade, event stream, SQL session) was opened; ends with `closed`. */
  opened(): void
  closed(): void
  /** Something is under way for the tenant (a request, an upgraded connection, an SQL session); ends with `ended`. */
  began(): void
  ended(): void
}

export class Meter {
  readonly #store: CounterStore
  readonly #now: () => number
  readonly #since: number
  readonly #tenants = new Map<string, CountedTenant>()
  /** Tenants with connections that stay. */
  readonly #connected = new Set<CountedTenant>()

  /** @param now milliseconds since 1970 */
  constructor(store: CounterStore, now: () => number) {
    this.#store = store
    this.#now = now
    this.#since = now()
  }

  tenant(tenantId: string): TenantMeter {
    let tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) {
      tenant = new CountedTenant(tenantId, this.#store, this.#now, this.#connected)
      this.#tenants.set(tenantId, tenant)
    }
    return tenant
  }

  /** A tenant that is gone needs no hand; its counters stay until they are pushed. */
  forget(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }

  /** The start, and the tenants of which there was anything since. */
  activity(): Activity {
    const tenants = Object.fromEntries([...this.#tenants].map(([id, tenant]) => [id, tenant.activity()]))
    return { since: new Date(this.#since).toISOString(), tenants }
  }

  /** To be called at least once an hour: connections that stay open count in every hour they see. */
  tick(): void {
    for (const tenant of this.#connected) tenant.peak()
  }
}

class CountedTenant implements TenantMeter {
  readonly #id: string
  readonly #store: CounterStore
  readonly #connected: Set<CountedTenant>
  readonly #now: () => number
  /** Connections that stay. */
  #open = 0
  #underWay = 0
  #lastAt: number

  constructor(id: string, store: CounterStore, now: () => number, connected: Set<CountedTenant>) {
    this.#id = id
    this.#store = store
    this.#now = now
    this.#lastAt = now()
    this.#connected = connected
  }

  request(group: Group, method: string, status: number): void {
    const breakdown = { group, method: knownMethods.has(method) ? method : 'OTHER', statusClass: classOf(status) }
    this.#store.add(this.#id, 'requests', breakdown, 1)
  }

  refused(group: Group): void {
    this.#store.add(this.#id, 'refused_requests', { group, method: '', statusClass: '' }, 1)
  }

  egress(group: Group, bytes: number): void {
    this.#store.add(this.#id, 'egress_bytes', { group, method: '', statusClass: '' }, bytes)
  }

  opened(): void {
    if (this.#open++ === 0) this.#connected.add(this)
    this.peak()
  }

  closed(): void {
    if (--this.#open === 0) this.#connected.delete(this)
  }

  began(): void {
    this.#underWay++
    this.#lastAt = this.#now()
  }

  ended(): void {
    this.#underWay--
    this.#lastAt = this.#now()
  }

  activity(): TenantActivity {
    return { last_request_at: new Date(this.#lastAt).toISOString(), open: this.#underWay }
  }

  peak(): void {
    this.#store.atLeast(this.#id, 'connections_peak', wholeTenant, this.#open)
  }
}

const wholeTenant = { group: '', method: '', statusClass: '' }

/** Methods counted by name; the rest of HTTP's registry counts together, so that a client cannot multiply counters. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** A switch of protocols is a success. */
function classOf(status: number): string {
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}
