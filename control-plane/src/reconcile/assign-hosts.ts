// Chooses the hosts of a tenant's services in a region with several hosts, and reserves their memory there.
import { EngineError } from '../engines/index.ts'
import {
  crowded,
  refitHosts,
  type HostState,
  type PlacementStore,
  type Reserved,
  type ServiceNeed,
} from '../placement/index.ts'
import { componentServices, type Placement } from '../stacks/index.ts'
import type { Failpoint } from './failpoints.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

/** The dependencies of a choice of hosts. */
export interface AssignDeps {
  region: Pick<Region, 'spansHosts' | 'needs' | 'capacities' | 'engine'>
  placements: PlacementStore
  failpoint: Failpoint
  epoch: bigint
}

/** Returns the placement without the services on hosts that receive none, or that the region has no more. */
function without(placement: Placement, states: ReadonlyMap<string, HostState>, hosts: readonly string[]): Placement {
  return Object.fromEntries(Object.entries(placement).filter(([, host]) => hosts.includes(host) && !states.has(host)))
}

/**
 * Chooses and records the hosts of services that have none, in a region with several hosts. Services of a cluster also get another one
 * if theirs is lost or is being emptied, or does not have the memory of a larger plan.
 * If no host has enough memory for larger services, they retain the sizes for which it is reserved.
 * @throws EngineError REGION_FULL without a change, if no host has enough memory for services that have none
 */
export async function assignHosts(
  snapshot: Snapshot,
  { region, placements, failpoint, epoch }: AssignDeps,
  signal: AbortSignal,
): Promise<Snapshot> {
  if (!region.spansHosts) return snapshot
  const [needs, states] = await Promise.all([region.needs(snapshot, signal), placements.states(snapshot.regionId)])
  const isCluster = hasCluster(snapshot)
  // The data of a single database is on its host. Members of a cluster copy theirs.
  const fixedOf = (placement: Placement) =>
    isCluster ? without(placement, states, region.engine?.hostIds ?? []) : placement
  const areIn = (placement: Placement) => needs.every(({ service }) => placement[service] !== undefined)
  const areReserved = (reserved: Reserved) =>
    needs.every(({ service, memoryBytes }) => reserved[service] === memoryBytes)
  const isCrowded = isCluster && crowded(fixedOf(snapshot.placement), region.engine?.hostIds ?? []).length > 0
  if (areIn(fixedOf(snapshot.placement)) && areReserved(snapshot.reserved) && !isCrowded) return snapshot
  // What one tenant gets is reserved before the next one chooses.
  return placements.inTurn(async () => {
    const own = await placements.of(snapshot.id)
    const hosts = await region.capacities(await placements.reserved(snapshot.regionId), signal)
    const receiving = hosts.map(({ id }) => id).filter((id) => !states.has(id))
    const fixed = fixedOf(own.placement)
    const moving = isCluster ? crowded(fixed, receiving) : []
    const staying = Object.fromEntries(Object.entries(fixed).filter(([service]) => !moving.includes(service)))
    const refit = (current: Placement) =>
      refitHosts({ needs, current, reserved: own.reserved, hosts, receiving, together: !isCluster })
    // Services that should leave a host stay there, and are repaired there, until another one has enough memory.
    const chosen = refit(staying) ?? (areIn(own.placement) ? refit(own.placement) : undefined)
    if (chosen === undefined && areIn(own.placement)) return withReserved({ ...snapshot, ...own }, needs)
    if (chosen === undefined) throw regionFull()
    if (needs.every(({ service }) => chosen[service] === own.placement[service]) && areReserved(own.reserved))
      return { ...snapshot, ...own }
    await failpoint('allocate.chosen')
    const placement = await placements.assign(snapshot.id, needs, chosen, epoch)
    await failpoint('allocate.placed')
    const reserved = Object.fromEntries(needs.map(({ service, memoryBytes }) => [service, memoryBytes]))
    return { ...snapshot, placement, reserved }
  })
}

/** Returns the tenant with the sizes for which memory is reserved, so that its services are repaired without the use of more. */
function withReserved(snapshot: Snapshot, needs: readonly ServiceNeed[]): Snapshot {
  const { isolation, sizes, reserved } = snapshot
  const sizeOf = (component: 'postgres' | 'runtime') => {
    const [service] = componentServices(isolation)[component]
    const need = needs.find((one) => one.service === service)?.memoryBytes ?? 0
    const excess = Math.max(0, need - (reserved[service] ?? need))
    return { ...sizes[component], memoryBytes: sizes[component].memoryBytes - excess }
  }
  return { ...snapshot, sizes: { postgres: sizeOf('postgres'), runtime: sizeOf('runtime') }, lacksMemory: true }
}

/** Returns the error that no host has the memory for a tenant's services. */
export function regionFull(): EngineError {
  return new EngineError('REGION_FULL', 'No host of the region has enough free memory for the services of the plan.')
}
