// Bytes that sweeps have found in the store beyond those that the home reports. A tenant can change its home's tables.
import { hourMilliseconds, hourOf } from '@tenantry/contract'

/** The files of one tenant. */
export interface FilesOfTenant {
  /** Bytes that the last sweep found. */
  readonly bytes: number
  /** Bytes times milliseconds that the home did not report, by the hours' starts in milliseconds since 1970. */
  readonly unreported: ReadonlyMap<number, bigint>
}

interface Observation {
  bytes: number
  at: number
  unreported: Map<number, bigint>
}

const maxHours = 48

export class ObservedFiles {
  readonly #tenants = new Map<string, Observation>()

  /**
   * Records what a sweep found. Bytes that two sweeps have found count for the time between them.
   * @param foundBytes bytes in the store
   * @param reportedBytes bytes that the home reports; the larger value of before and after the sweep
   * @param at milliseconds since 1970
   */
  record(tenantId: string, foundBytes: number, reportedBytes: number, at: number): void {
    const before = this.#tenants.get(tenantId)
    const unreported = before?.unreported ?? new Map<number, bigint>()
    if (before !== undefined && foundBytes > reportedBytes)
      add(unreported, Math.min(before.bytes, foundBytes), before.at, at)
    while (unreported.size > maxHours) unreported.delete(Math.min(...unreported.keys()))
    this.#tenants.set(tenantId, { bytes: foundBytes, at, unreported })
  }

  get(tenantId: string): FilesOfTenant | undefined {
    return this.#tenants.get(tenantId)
  }

  evict(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }
}

function add(unreported: Map<number, bigint>, bytes: number, from: number, until: number): void {
  for (let hour = hourOf(from); hour < until; hour += hourMilliseconds) {
    const milliseconds = Math.floor(Math.min(until, hour + hourMilliseconds) - Math.max(from, hour))
    unreported.set(hour, (unreported.get(hour) ?? 0n) + BigInt(bytes) * BigInt(milliseconds))
  }
}
