// Whether a region with several hosts has the memory for the services of a new tenant, or for larger ones, before anything is changed.
import { EngineError } from '../engines/index.ts'
import { refitHosts, type HostCapacity, type PlacementStore, type Reserved } from '../placement/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Isolation, Placement } from '../stacks/index.ts'
import type { ComponentSizes, SizeChange, WantedRoom } from '../tenants/index.ts'
import { movedMembers } from './leaving-services.ts'
import type { Region } from './region.ts'

/** A tenant's services, which may have hosts already, with the sizes that they are to have. */
export interface SizedTenant {
  /** Empty for a tenant that does not exist yet. */
  id: string
  isolation: Isolation
  sizes: ComponentSizes
  placement: Placement
  /** Memory that the services reserve on their hosts. */
  reserved: Reserved
}

/** A tenant as it is after a change of its sizes. */
export interface ChangedTenant extends SizedTenant {
  regionId: string
  /** Its sizes before the change. */
  before: ComponentSizes
}

/** The part of the control database that the check reads. */
export interface RoomStore {
  /** Returns the sizes of a plan; undefined for a plan without any. */
  planSizes(plan: string): Promise<ComponentSizes | undefined>
  /** Returns the tenant that was created in advance, with its services, and that becomes the next new one; undefined if there is none. */
  nextWarm(regionId: string, isolation: Isolation): Promise<SizedTenant | undefined>
  /** Returns a tenant as it is after a change of its sizes; undefined for one without services of its own. */
  changed(tenantId: string, change: SizeChange): Promise<ChangedTenant | undefined>
  /**
   * Returns the tenants of a region whose own services may need memory that they do not reserve yet, in the order of their creation: those
   * without hosts, and those that were changed.
   */
  waiting(regionId: string): Promise<SizedTenant[]>
}

interface RoomDeps {
  regions: ReadonlyMap<string, Pick<Region, 'spansHosts' | 'needs' | 'capacities'>>
  room: RoomStore
  store: { placements: Pick<PlacementStore, 'states' | 'reserved'> }
  clock: Pick<Clock, 'timeout'>
}

const checkMilliseconds = 5_000

/** Whether a change makes services larger. Smaller ones need no room, also if there is none for the present ones. */
function isLarger({ sizes, before }: ChangedTenant): boolean {
  const grows = (component: keyof ComponentSizes) => sizes[component].memoryBytes > before[component].memoryBytes
  return grows('postgres') || grows('runtime')
}

/** Checks whether the hosts of regions have memory that is not reserved for the services of other tenants. */
export interface RoomCheck {
  /** Checks it for a new tenant. */
  hasRoom(regionId: string, wanted: WantedRoom): Promise<boolean>
  /**
   * Checks it for a tenant that gets other sizes. A single database stays on its host; the services of a cluster may go to others, but only
   * one of its members.
   */
  hasRoomToGrow(tenantId: string, change: SizeChange): Promise<boolean>
}

/** Creates the check. A region of which no host responds does not count as full: then the tenant waits for its services. */
export function createRoomCheck({ regions, room, store: { placements }, clock }: RoomDeps): RoomCheck {
  /** @param maxMoved number of members of a cluster that may leave their hosts */
  const isFree = async (
    regionId: string,
    region: Pick<Region, 'needs' | 'capacities'>,
    wanted: SizedTenant,
    maxMoved = Infinity,
  ) => {
    const signal = clock.timeout(checkMilliseconds)
    const [states, reserved, waiting] = await Promise.all([
      placements.states(regionId),
      placements.reserved(regionId),
      room.waiting(regionId),
    ])
    try {
      let hosts: readonly HostCapacity[] = await region.capacities(reserved, signal)
      if (hosts.length === 0) return true
      const receiving = hosts.map(({ id }) => id).filter((id) => !states.has(id))
      /** Returns the hosts with the memory that a tenant leaves; undefined if it has no room. */
      const withTenant = async ({ placement: current, reserved, ...tenant }: SizedTenant, maximum = Infinity) => {
        const needs = await region.needs(tenant, signal)
        const together = tenant.isolation !== 'cluster-per-tenant'
        const chosen = refitHosts({ needs, current, reserved, hosts, receiving, together })
        if (chosen === undefined || movedMembers(current, chosen).length > maximum) return undefined
        const memoryIn = (placement: Placement, host: string, memoryOf: (service: string) => number) =>
          Object.keys(placement)
            .filter((service) => placement[service] === host)
            .reduce((sum, service) => sum + memoryOf(service), 0)
        const needOf = (name: string) => needs.find(({ service }) => service === name)?.memoryBytes ?? 0
        return hosts.map(({ freeBytes, ...host }) => ({
          ...host,
          freeBytes:
            freeBytes +
            memoryIn(current, host.id, (service) => reserved[service] ?? 0) -
            memoryIn(chosen, host.id, needOf),
        }))
      }
      for (const one of waiting) if (one.id !== wanted.id) hosts = (await withTenant(one)) ?? hosts
      return (await withTenant(wanted, maxMoved)) !== undefined
    } catch (error) {
      if (signal.aborted || error instanceof EngineError) return true
      throw error
    }
  }

  return {
    async hasRoom(regionId, { plan, isolation, takesWarm = true, sizes: own }) {
      const region = regions.get(regionId)
      if (region?.spansHosts !== true || isolation === 'schema-per-tenant') return true
      const sizes = own ?? (await room.planSizes(plan))
      if (sizes === undefined) return true
      const warm = takesWarm ? await room.nextWarm(regionId, isolation) : undefined
      const none = { id: '', isolation, placement: {}, reserved: {} }
      return isFree(regionId, region, { ...(warm ?? none), sizes })
    },

    async hasRoomToGrow(tenantId, change) {
      const wanted = await room.changed(tenantId, change)
      const region = regions.get(wanted?.regionId ?? '')
      if (wanted === undefined || region?.spansHosts !== true || !isLarger(wanted)) return true
      // Members with data leave their hosts one at a time.
      return isFree(wanted.regionId, region, wanted, 1)
    },
  }
}
