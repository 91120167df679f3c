// The choice of hosts for services that other parts than the reconciler create, in regions with several hosts.
import { EngineError } from '../engines/index.ts'
import { chooseHosts, type PlacementStore } from '../placement/index.ts'
import type { Placement } from '../stacks/index.ts'
import { assignHosts, regionFull } from './assign-hosts.ts'
import type { Failpoint } from './failpoints.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

/** The parts of a region that choices of hosts use. */
type ChoiceRegion = Pick<Region, 'spansHosts' | 'needs' | 'capacities' | 'engine' | 'cluster' | 'clusterOrigin'>

interface ChoiceDeps {
  regions: ReadonlyMap<string, ChoiceRegion>
  placements: PlacementStore
  failpoint: Failpoint
}

/** Chooses hosts for services. */
export interface HostChoice {
  /**
   * Chooses and records the hosts of a tenant's services that have none. @returns them; none in a region on one host
   * @throws EngineError REGION_FULL; LeadershipLost
   */
  assign(tenant: Snapshot, epoch: bigint, signal: AbortSignal): Promise<Placement>
  /**
   * Chooses and records another host for the services of a tenant with a single database, whose host is lost, until `endReplacement`.
   * @returns the tenant with its new placement; undefined if the host is not lost
   * @throws EngineError REGION_FULL; LeadershipLost
   */
  replace(tenant: Snapshot, epoch: bigint, signal: AbortSignal): Promise<Snapshot | undefined>
  /**
   * Ends the replacement of a tenant's host. @param isDone whether the services stay on the new one; otherwise, the lost one is recorded
   * again @throws LeadershipLost
   */
  endReplacement(tenantId: string, isDone: boolean, epoch: bigint): Promise<void>
  /**
   * Returns the host with the most free memory, of those that receive services, for services that exist only for a job; undefined in a
   * region on one host. Nothing is reserved. @throws EngineError ENGINE_UNREACHABLE if no host responds
   */
  forJob(regionId: string, signal: AbortSignal): Promise<string | undefined>
}

/** Creates the choice. */
export function createHostChoice({ regions, placements, failpoint }: ChoiceDeps): HostChoice {
  const spanning = (id: string) => {
    const region = regions.get(id)
    return region?.spansHosts === true ? region : undefined
  }

  return {
    async assign(tenant, epoch, signal) {
      const region = spanning(tenant.regionId)
      if (region === undefined) return {}
      return (await assignHosts(tenant, { region, placements, failpoint, epoch }, signal)).placement
    },

    async replace(tenant, epoch, signal) {
      const region = spanning(tenant.regionId)
      if (region === undefined || hasCluster(tenant)) return undefined
      const states = await placements.states(tenant.regionId)
      if (!Object.values(tenant.placement).some((host) => states.get(host) === 'lost')) return undefined
      return placements.inTurn(tenant.regionId, async () => {
        const needs = await region.needs(tenant, signal)
        const hosts = await region.capacities(await placements.reserved(tenant.regionId), signal)
        const receiving = hosts.filter(({ id }) => !states.has(id))
        const chosen = chooseHosts(needs, receiving, {}, true)
        if (chosen === undefined) throw regionFull()
        const placement = await placements.assign(tenant.id, needs, chosen, epoch, true)
        return { ...tenant, placement, isReplaced: true }
      })
    },

    endReplacement: (tenantId, isDone, epoch) => placements.endReplacement(tenantId, isDone, epoch),

    async forJob(regionId, signal) {
      const region = spanning(regionId)
      if (region === undefined) return undefined
      const [states, reserved] = await Promise.all([placements.states(regionId), placements.reserved(regionId)])
      const hosts = await region.capacities(reserved, signal)
      const receiving = hosts.filter(({ id }) => !states.has(id))
      const [best] = (receiving.length === 0 ? hosts : receiving).toSorted((a, b) => b.freeBytes - a.freeBytes)
      if (best === undefined) throw new EngineError('ENGINE_UNREACHABLE', 'No host of the region responds.')
      return best.id
    },
  }
}
