// A source of watches in memory.
import type { BlockedAddress, Route } from '@tenantry/contract'
import type { EntrySource } from '#control-plane/watch/watch-hub.ts'
import { createWatches, type Published, type PublishedSource, type Watches } from '#control-plane/watch/watches.ts'

/** A source in memory, with entries as large and as many as a test needs. */
export class MemorySource implements PublishedSource {
  readonly entries = new Map<string, Published>()
  broken = false

  put(id: string, generation: number, reason = ''): void {
    const route: Route = {
      tenant_id: id,
      name: 'large',
      generation,
      phase: 'ready',
      runtimes: [],
      dedicated: false,
      reason,
    }
    this.entries.set(id, { tenantId: id, region: 'local', manifest: undefined, route })
  }

  async *all() {
    await Promise.resolve()
    if (this.broken) throw new Error('the database is away')
    yield* this.entries.values()
  }

  async some(ids: ReadonlySet<string>) {
    await Promise.resolve()
    if (this.broken) throw new Error('the database is away')
    return [...ids].flatMap((id) => this.entries.get(id) ?? [])
  }
}

const noAddresses: EntrySource<BlockedAddress> = {
  async *all() {},
  some: () => Promise.resolve([]),
}

/** Returns the ID of a tenant. */
export const idOf = (nth: number) => `t_${String(nth).padStart(20, '0')}`

/** Creates the senders of watches of a source, by default for one region. */
export function watchesOf(source: PublishedSource, onError: (error: Error) => void, regions = ['local']): Watches {
  return createWatches(source, noAddresses, regions, () => new Date(), onError)
}
