// Files that lie in the store although the home speaks of fewer bytes, as sweeps have found them: the home's tables are the tenant's.
import { hourMilliseconds, hourOf } from '@tenantry/contract'

/** Of one tenant. */
export interface SeenFiles {
  /** Bytes that the last sweep found. */
  readonly bytes: number
  /** Bytes times milliseconds that were found unsaid, by the hours' starts in milliseconds since 1970. */
  readonly unsaid: ReadonlyMap<number, bigint>
}

interface Stored {
  bytes: number
  at: number
  unsaid: Map<number, bigint>
}

const hoursRetained = 48

export class ObservedFiles {
  readonly #tenants = new Map<string, Stored>()

  /**
   * What two sweeps have both found was there from the one to the other.
   * @param found bytes in the store @param said bytes as the home has them, the most of before and after the look
   * @param at milliseconds since 1970
   */
  note(tenantId: string, found: number, reported: number, at: number): void {
    const before = this.#tenants.get(tenantId)
    const unsaid = before?.unsaid ?? new Map<number, bigint>()
    if (before !== undefined && found > reported) add(unsaid, Math.min(before.bytes, found), before.at, at)
    while (unsaid.size > hoursRetained) unsaid.delete(Math.min(...unsaid.keys()))
    this.#tenants.set(tenantId, { bytes: found, at, unsaid })
  }

  of(tenantId: string): SeenFiles | undefined {
    return this.#tenants.get(tenantId)
  }

  evict(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }
}

function add(unsaid: Map<number, bigint>, bytes: number, from: number, until: number): void {
  for (let hour = hourOf(from); hour < until; hour += hourMilliseconds) {
    const milliseconds = Math.floor(Math.min(until, hour + hourMilliseconds) - Math.max(from, hour))
    unsaid.set(hour, (unsaid.get(hour) ?? 0n) + BigInt(bytes) * BigInt(milliseconds))
  }
}
