// Opens what the API needs of rebalances.
import type { PlacementStore } from '../placement/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Region } from '../reconcile/index.ts'
import { createHostReader, type ReadHosts } from './read-hosts.ts'
import { createRebalanceStore, type RebalanceStore } from './store.ts'

interface OpenRebalancesDeps {
  database: Database
  now: () => Date
  regions: ReadonlyMap<string, Region>
  store: { placements: Pick<PlacementStore, 'states' | 'reserved'> }
  clock: Pick<Clock, 'timeout'>
}

/** Opens the store of rebalances, and the reader of the hosts that they balance. */
export function openRebalances({ database, now, regions, store: { placements }, clock }: OpenRebalancesDeps): {
  rebalances: RebalanceStore
  readHosts: ReadHosts
} {
  const rebalances = createRebalanceStore({ database, now })
  return { rebalances, readHosts: createHostReader({ regions, placements, clusters: rebalances.clusters, clock }) }
}
