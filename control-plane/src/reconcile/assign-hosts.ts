// Chooses the hosts of a tenant's services in a region with several hosts, and reserves their memory there.
import type { ClusterState } from '../clusters/index.ts'
import { EngineError } from '../engines/index.ts'
import { refitHosts, type PlacementStore, type Reserved, type ServiceNeed } from '../placement/index.ts'
import { componentServices, ofModel, type Placement } from '../stacks/index.ts'
import type { Failpoint } from './failpoints.ts'
import { isRunning, keepsData, leavingServices, type LeavingInput } from './leaving-services.ts'
import { readOrUndefined } from './read-or-undefined.ts'
import { unobservedHome, type Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'
import { shouldMove } from './should-move.ts'

/** The dependencies of a choice of hosts. */
export interface AssignDeps {
  region: Pick<Region, 'spansHosts' | 'needs' | 'capacities' | 'engine' | 'cluster' | 'clusterOrigin'>
  placements: PlacementStore
  failpoint: Failpoint
  epoch: bigint
}

/**
 * Chooses and records the hosts of services that have none, in a region with several hosts. Services of a cluster also get another one
 * if theirs is lost or is being emptied (`leavingServices`), or does not have the memory of a larger plan. For a larger plan, at most one
 * member with data leaves its host, and only while the others have the data. If services cannot get the memory of a larger plan, they
 * retain the sizes for which it is reserved.
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
  const areIn = (placement: Placement) => needs.every(({ service }) => placement[service] !== undefined)
  const areReserved = (reserved: Reserved) =>
    needs.every(({ service, memoryBytes }) => reserved[service] === memoryBytes)
  const runs = isRunning(snapshot)
  const isResized = isCluster && areIn(snapshot.placement) && !areReserved(snapshot.reserved)
  const isAwaited = isResized || shouldMove(snapshot, states, region.engine)
  const isLostStopped = isCluster && !runs && Object.values(snapshot.placement).some((id) => states.get(id) === 'lost')
  const { hasData, mayBeginAgain } = await originOf(snapshot, { isAwaited, isLostStopped }, region, signal)
  const cluster =
    isAwaited && runs && hasData ? await readOrUndefined(() => region.cluster(snapshot, signal), signal) : undefined
  const inputOf = (all: Placement, receiving: readonly string[], cluster: ClusterState | undefined): LeavingInput => {
    // Services that a move adds or removes have no part in the choice.
    const placement = ofModel(all, snapshot.isolation)
    return { placement, states, hosts: ids, receiving, isRunning: runs, hasData, mayBeginAgain, cluster }
  }
  /** Returns the hosts of the services that stay there. */
  const stayingOf = (input: LeavingInput): Placement => {
    // The data of a single database is on its host. Members of a cluster copy theirs.
    if (!isCluster) return input.placement
    const leaving = leavingServices(input)
    return Object.fromEntries(Object.entries(input.placement).filter(([service]) => !leaving.includes(service)))
  }
  if (areIn(stayingOf(inputOf(snapshot.placement, ids, cluster))) && areReserved(snapshot.reserved)) return snapshot
  // What one tenant gets is reserved before the next one chooses.
  return placements.inTurn(snapshot.regionId, async () => {
    const own = await placements.of(snapshot.id)
    const hosts = await region.capacities(await placements.reserved(snapshot.regionId), signal)
    const receiving = hosts.map(({ id }) => id).filter((id) => !states.has(id))
    const input = inputOf(own.placement, receiving, cluster)
    const staying = stayingOf(input)
    const refit = (sizes: readonly ServiceNeed[], current: Placement) => {
      const together = !isCluster
      const chosen = refitHosts({ needs: sizes, current, reserved: own.reserved, hosts, receiving, together })
      return chosen === undefined || (isCluster && !keepsData(chosen, input)) ? undefined : chosen
    }
    const record = async (sizes: readonly ServiceNeed[], chosen: Placement) => {
      const isRecorded = sizes.every(
        ({ service, memoryBytes }) =>
          chosen[service] === own.placement[service] && memoryBytes === own.reserved[service],
      )
      if (isRecorded) return { ...snapshot, ...own }
      return reserve(snapshot, own.reserved, sizes, chosen, { placements, failpoint, epoch })
    }
    const isPlaced = areIn(own.placement)
    // Services that should leave a host stay there, and are repaired there, until another one has enough memory.
    const chosen = refit(needs, staying) ?? (isPlaced ? refit(needs, input.placement) : undefined)
    if (chosen !== undefined) return record(needs, chosen)
    if (!isPlaced) throw regionFull()
    const former = formerNeeds(needs, own.reserved)
    const unchanged = refit(former, staying)
    const after = unchanged === undefined ? { ...snapshot, ...own } : await record(former, unchanged)
    return withReserved(after, needs)
  })
}

/**
 * Returns whether a cluster may hold data, and whether it was lost with its region, so that it begins again. A backup or a move has filled
 * a cluster before its home is recorded.
 */
async function originOf(
  snapshot: Snapshot,
  { isAwaited, isLostStopped }: { isAwaited: boolean; isLostStopped: boolean },
  region: Pick<Region, 'clusterOrigin'>,
  signal: AbortSignal,
): Promise<{ hasData: boolean; mayBeginAgain: boolean }> {
  const { id, homeVersion } = snapshot
  const isRead = homeVersion === undefined ? isAwaited : homeVersion === unobservedHome && isLostStopped
  if (!isRead) return { hasData: homeVersion !== undefined, mayBeginAgain: false }
  const origin = await readOrUndefined(() => region.clusterOrigin(id, signal), signal)
  if (homeVersion !== undefined) return { hasData: true, mayBeginAgain: origin === 'none' }
  return { hasData: origin === undefined || origin === 'adopted', mayBeginAgain: false }
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
  return placements.inTurn(regionId, async () => {
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

/** Returns what services need that do not grow. */
function formerNeeds(needs: readonly ServiceNeed[], reserved: Reserved): ServiceNeed[] {
  return needs.map(({ service, memoryBytes }) => ({
    service,
    memoryBytes: Math.min(memoryBytes, reserved[service] ?? memoryBytes),
  }))
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
