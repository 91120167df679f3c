// Whether a region with several hosts has the memory for another tenant's own services, before the tenant is created.
import { EngineError } from '../engines/index.ts'
import { chooseHosts, type HostCapacity, type PlacementStore, type ServiceNeed } from '../placement/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Isolation, Placement } from '../stacks/index.ts'
import type { ComponentSizes } from '../tenants/index.ts'
import type { Region } from './region.ts'

/** The model and the sizes of a tenant, which determine the memory that its services reserve. */
export interface Sized {
  isolation: Isolation
  sizes: ComponentSizes
}

/** The part of the control database that the check reads. */
export interface RoomStore {
  /** Returns the sizes of a plan; undefined for a plan without any. */
  planSizes(plan: string): Promise<ComponentSizes | undefined>
  /** Whether a tenant that was created in advance, with its services, can become the new one. */
  hasWarm(regionId: string, isolation: Isolation): Promise<boolean>
  /** Returns the tenants of a region whose own services have no hosts yet, in the order of their creation. */
  waiting(regionId: string): Promise<Sized[]>
}

interface RoomDeps {
  regions: ReadonlyMap<string, Pick<Region, 'spansHosts' | 'needs' | 'capacities'>>
  room: RoomStore
  store: { placements: Pick<PlacementStore, 'states' | 'reserved'> }
  clock: Pick<Clock, 'timeout'>
}

const checkMilliseconds = 5_000

/** Checks whether hosts of a region have memory that is not reserved for the services of another tenant. */
export type HasRoom = (regionId: string, wanted: { plan: string; isolation: Isolation }) => Promise<boolean>

/** Creates the check. A region of which no host responds does not count as full: then the tenant waits for its services. */
export function createRoomCheck({ regions, room, store: { placements }, clock }: RoomDeps): HasRoom {
  return async (regionId, { plan, isolation }) => {
    const region = regions.get(regionId)
    if (region?.spansHosts !== true || isolation === 'schema-per-tenant') return true
    const signal = clock.timeout(checkMilliseconds)
    const sizes = await room.planSizes(plan)
    if (sizes === undefined || (await room.hasWarm(regionId, isolation))) return true
    const [states, reserved, waiting] = await Promise.all([
      placements.states(regionId),
      placements.reserved(regionId),
      room.waiting(regionId),
    ])
    try {
      const responding = await region.capacities(reserved, signal)
      const choose = async (one: Sized, hosts: readonly HostCapacity[]) => {
        const needs = await region.needs(one, signal)
        const chosen = chooseHosts(needs, hosts, {}, one.isolation !== 'cluster-per-tenant')
        return chosen === undefined ? undefined : hosts.map((host) => less(host, needs, chosen))
      }
      let free: readonly HostCapacity[] = responding.filter(({ id }) => !states.has(id))
      for (const one of waiting) free = (await choose(one, free)) ?? free
      return responding.length === 0 || (await choose({ isolation, sizes }, free)) !== undefined
    } catch (error) {
      if (signal.aborted || error instanceof EngineError) return true
      throw error
    }
  }
}

/** Returns the host with the memory that the services leave which were chosen for it. */
function less({ freeBytes, ...host }: HostCapacity, needs: readonly ServiceNeed[], chosen: Placement): HostCapacity {
  const own = needs.filter(({ service }) => chosen[service] === host.id)
  return { ...host, freeBytes: own.reduce((free, { memoryBytes }) => free - memoryBytes, freeBytes) }
}
