// Chooses the hosts of a tenant's services in a region with several hosts, and reserves their memory there.
import type { ClusterState } from '../clusters/index.ts'
import { EngineError, isUnreachable } from '../engines/index.ts'
import { refitHosts, type PlacementStore, type Reserved, type ServiceNeed } from '../placement/index.ts'
import { componentServices, ofModel, type Placement } from '../stacks/index.ts'
import type { Failpoint } from './failpoints.ts'
import { isRunning, leavingServices } from './leaving-services.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'
import { shouldMove } from './should-move.ts'

/** The dependencies of a choice of hosts. */
export interface AssignDeps {
  region: Pick<Region, 'spansHosts' | 'needs' | 'capacities' | 'engine' | 'cluster'>
  placements: PlacementStore
  failpoint: Failpoint
  epoch: bigint
}

/**
 * Chooses and records the hosts of services that have none, in a region with several hosts. Services of a cluster also get another one
 * if theirs is lost or is being emptied (`leavingServices`), or does not have the memory of a larger plan.
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
  const ids = region.engine?.hostIds ?? []
  const hasData = snapshot.homeVersion !== undefined
  /** Returns the hosts of the services that stay there. Services that a move adds or removes have no part in the choice. */
  const stayingOf = (all: Placement, receiving: readonly string[], cluster: ClusterState | undefined): Placement => {
    const placement = ofModel(all, snapshot.isolation)
    // The data of a single database is on its host. Members of a cluster copy theirs.
    if (!isCluster) return placement
    const own = { placement, isRunning: isRunning(snapshot), hasData, cluster }
    const leaving = leavingServices({ ...own, states, hosts: ids, receiving })
    return Object.fromEntries(Object.entries(placement).filter(([service]) => !leaving.includes(service)))
  }
  const areIn = (placement: Placement) => needs.every(({ service }) => placement[service] !== undefined)
  const areReserved = (reserved: Reserved) =>
    needs.every(({ service, memoryBytes }) => reserved[service] === memoryBytes)
  const isAwaited = shouldMove(snapshot, states, region.engine)
  const cluster = isAwaited && hasData ? await readState(snapshot, region, signal) : undefined
  if (areIn(stayingOf(snapshot.placement, ids, cluster)) && areReserved(snapshot.reserved)) return snapshot
  // What one tenant gets is reserved before the next one chooses.
  return placements.inTurn(async () => {
    const own = await placements.of(snapshot.id)
    const hosts = await region.capacities(await placements.reserved(snapshot.regionId), signal)
    const receiving = hosts.map(({ id }) => id).filter((id) => !states.has(id))
    const staying = stayingOf(own.placement, receiving, cluster)
    const refit = (current: Placement) =>
      refitHosts({ needs, current, reserved: own.reserved, hosts, receiving, together: !isCluster })
    // Services that should leave a host stay there, and are repaired there, until another one has enough memory.
    const chosen =
      refit(staying) ?? (areIn(own.placement) ? refit(ofModel(own.placement, snapshot.isolation)) : undefined)
    if (chosen === undefined && areIn(own.placement)) return withReserved({ ...snapshot, ...own }, needs)
    if (chosen === undefined) throw regionFull()
    if (needs.every(({ service }) => chosen[service] === own.placement[service]) && areReserved(own.reserved))
      return { ...snapshot, ...own }
    return reserve(snapshot, own.reserved, needs, chosen, { placements, failpoint, epoch })
  })
}

/** Reads the state of a cluster; undefined if no member responds. */
async function readState(
  snapshot: Snapshot,
  region: Pick<Region, 'cluster'>,
  signal: AbortSignal,
): Promise<ClusterState | undefined> {
  try {
    return await region.cluster(snapshot, signal)
  } catch (cause) {
    signal.throwIfAborted()
    if (isUnreachable(cause)) throw cause
    return undefined
  }
}

/**
 * Chooses and records the hosts of the services that a move gives a tenant in addition to its own, in a region with several hosts. They
 * stay there during the move.
 * @throws EngineError REGION_FULL without a change, if no host has enough memory
 */
export async function assignMovingHosts(
  snapshot: Snapshot,
  { region, placements, failpoint, epoch }: AssignDeps,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { id, regionId, moving, sizes } = snapshot
  if (!region.spansHosts || moving === undefined) return snapshot
  const { isolation } = moving
  const [needs, states] = await Promise.all([region.needs({ isolation, sizes }, signal), placements.states(regionId)])
  return placements.inTurn(async () => {
    const { placement, reserved } = await placements.of(id)
    const hosts = await region.capacities(await placements.reserved(regionId), signal)
    const receiving = hosts.map((host) => host.id).filter((host) => !states.has(host))
    const current = ofModel(placement, isolation)
    const chosen = refitHosts({ needs, current, reserved, hosts, receiving, together: !hasCluster({ isolation }) })
    if (chosen === undefined) throw regionFull()
    return reserve(snapshot, reserved, needs, chosen, { placements, failpoint, epoch })
  })
}

/** Records the hosts of services, and the memory that they reserve there. */
async function reserve(
  snapshot: Snapshot,
  before: Reserved,
  needs: readonly ServiceNeed[],
  chosen: Placement,
  { placements, failpoint, epoch }: Pick<AssignDeps, 'placements' | 'failpoint' | 'epoch'>,
): Promise<Snapshot> {
  await failpoint('allocate.chosen')
  const placement = await placements.assign(snapshot.id, needs, chosen, epoch)
  await failpoint('allocate.placed')
  const reserved = Object.fromEntries(needs.map(({ service, memoryBytes }) => [service, memoryBytes]))
  return { ...snapshot, placement, reserved: { ...before, ...reserved } }
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
