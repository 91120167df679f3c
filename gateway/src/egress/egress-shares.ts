// The connections that callers of the egress proxy hold, and the rates at which tenants open them and pass bytes.
import { RateGate } from '../quota/rate-gate.ts'
import { ByteRate } from './byte-rate.ts'

/** The limits of the egress proxy's callers. */
export interface EgressLimits {
  /** The maximum number of connections to hosts: of all tenants, of one tenant, and of the region's runtimes to their storage. */
  egressConnections: number
  egressConnectionsPerTenant: number
  egressStorageConnections: number
  /** The connections that one tenant may open: per second, and in a burst. */
  egressOpensPerSecond: number
  egressOpensBurst: number
  /** The bytes that one tenant may pass, both directions together: per second, and in a burst. */
  egressBytesPerSecond: number
  egressBytesBurst: number
}

/** One connection of a caller. */
export interface EgressSlot {
  /** Counts bytes. @returns the milliseconds for which the connection waits then */
  passed(bytes: number): number
  /** Releases the connection. Idempotent. */
  release(): void
}

interface Tenant {
  open: number
  readonly opens: RateGate
  readonly bytes: ByteRate
}

/** The number of tenants above which those that have been idle are evicted. */
const maxIdleTenants = 256

/** The callers' shares of the egress proxy. */
export class EgressShares {
  readonly #limits: EgressLimits
  readonly #elapsed: () => number
  readonly #tenants = new Map<string, Tenant>()
  #openOfTenants = 0
  #openOfStorage = 0
  /** The number of connections that were rejected because of a limit of all tenants or of the storage, and of one tenant. */
  rejectedOfAll = 0
  rejectedOfTenants = 0
  /** The number of times that a connection waited because of its tenant's rate of bytes. */
  waits = 0

  /** @param elapsed returns monotonic milliseconds */
  constructor(limits: EgressLimits, elapsed: () => number) {
    this.#limits = limits
    this.#elapsed = elapsed
  }

  get open(): number {
    return this.#openOfTenants + this.#openOfStorage
  }

  /** The number of connections of the tenant that holds most. */
  get maxOfTenants(): number {
    let max = 0
    for (const { open } of this.#tenants.values()) max = Math.max(max, open)
    return max
  }

  /** Takes a connection for a tenant. No tenant may hold more than are still free. @returns undefined when it has its share */
  ofTenant(tenantId: string): EgressSlot | undefined {
    const { egressConnections, egressConnectionsPerTenant } = this.#limits
    const free = egressConnections - this.#openOfTenants - 1
    if (free < 0) {
      this.rejectedOfAll++
      return undefined
    }
    const tenant = this.#tenantOf(tenantId)
    const next = tenant.open + 1
    if (next > egressConnectionsPerTenant || (next > 1 && next > free) || tenant.opens.take(this.#elapsed()) > 0) {
      this.rejectedOfTenants++
      return undefined
    }
    tenant.open++
    this.#openOfTenants++
    return {
      passed: (bytes) => {
        const wait = tenant.bytes.add(bytes, this.#elapsed())
        if (wait > 0) this.waits++
        return wait
      },
      release: once(() => {
        tenant.open--
        this.#openOfTenants--
      }),
    }
  }

  /** Takes a connection to the storage for a runtime of the region. @returns undefined when all are open */
  ofStorage(): EgressSlot | undefined {
    if (this.#openOfStorage >= this.#limits.egressStorageConnections) {
      this.rejectedOfAll++
      return undefined
    }
    this.#openOfStorage++
    return { passed: () => 0, release: once(() => this.#openOfStorage--) }
  }

  #tenantOf(tenantId: string): Tenant {
    let tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) {
      this.#evictIdle()
      const { egressOpensPerSecond, egressOpensBurst, egressBytesPerSecond, egressBytesBurst } = this.#limits
      tenant = {
        open: 0,
        opens: new RateGate({ per_second: egressOpensPerSecond, burst: egressOpensBurst }),
        bytes: new ByteRate({ bytesPerSecond: egressBytesPerSecond, burstBytes: egressBytesBurst }),
      }
      this.#tenants.set(tenantId, tenant)
    }
    return tenant
  }

  #evictIdle(): void {
    if (this.#tenants.size < maxIdleTenants) return
    const now = this.#elapsed()
    for (const [id, { open, opens, bytes }] of this.#tenants)
      if (open === 0 && opens.resetIn(now) === 0 && bytes.isIdle(now)) this.#tenants.delete(id)
  }
}

function once(release: () => void): () => void {
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    release()
  }
}
