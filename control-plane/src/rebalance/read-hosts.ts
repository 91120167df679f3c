// Reads the hosts of a region with several, with the clusters on them and their primaries, for the plan of a rebalance.
import PQueue from 'p-queue'
import type { HostCapacity, PlacementStore } from '../placement/index.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import { EngineError } from '../engines/index.ts'
import type { Region } from '../reconcile/index.ts'
import type { HostLoad, PlacedCluster } from './plan-host-moves.ts'
import type { StoredCluster } from './store-clusters.ts'

const readMilliseconds = 60_000
const clusterMilliseconds = 5_000
/** Each read runs a process in a container. */
const concurrency = 8

interface HostReaderDeps {
  regions: ReadonlyMap<string, Pick<Region, 'spansHosts' | 'capacities' | 'cluster'>>
  placements: Pick<PlacementStore, 'states' | 'reserved'>
  /** Returns the clusters of a region. */
  clusters: (region: string) => Promise<StoredCluster[]>
  clock: Pick<Clock, 'timeout'>
}

/** The hosts of a region that respond and receive services, and its clusters. */
export interface LoadOfHosts {
  hosts: HostLoad[]
  clusters: PlacedCluster[]
}

/** Reads the hosts of a region; undefined for a region with one host. @throws ControlError UNAVAILABLE if they cannot be read */
export type ReadHosts = (region: string) => Promise<LoadOfHosts | undefined>

/** Creates the reader. A cluster whose state cannot be read does not move. */
export function createHostReader({ regions, placements, clusters, clock }: HostReaderDeps): ReadHosts {
  return async (id) => {
    const region = regions.get(id)
    if (region?.spansHosts !== true) return undefined
    const signal = clock.timeout(readMilliseconds)
    const [states, reserved, stored] = await Promise.all([placements.states(id), placements.reserved(id), clusters(id)])
    const capacities = await region.capacities(reserved, signal).catch((cause: unknown) => {
      if (!(cause instanceof EngineError) && !signal.aborted) throw cause
      throw new ControlError('UNAVAILABLE', `The hosts of the region "${id}" cannot be read.`, { cause })
    })
    const queue = new PQueue({ concurrency })
    const read = async ({ isMovable, ...cluster }: StoredCluster): Promise<PlacedCluster> => {
      const bounded = AbortSignal.any([signal, clock.timeout(clusterMilliseconds)])
      const tenant = { id: cluster.tenantId, isolation: 'cluster-per-tenant' } as const
      const state = isMovable ? await region.cluster(tenant, bounded).catch(() => undefined) : undefined
      const isWhole = state?.hasQuorum === true && state.notReplicating.length === 0
      return { ...cluster, primary: state?.primary, candidates: state?.candidates ?? [], isMovable: isWhole }
    }
    return {
      hosts: capacities.filter((host) => !states.has(host.id)).map((host) => loadOf(host, reserved)),
      clusters: await queue.addAll(stored.map((cluster) => () => read(cluster))),
    }
  }
}

function loadOf({ id, zone, freeBytes }: HostCapacity, reserved: ReadonlyMap<string, number>): HostLoad {
  return { id, zone, freeBytes, totalBytes: freeBytes + (reserved.get(id) ?? 0) }
}
