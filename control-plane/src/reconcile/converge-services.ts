// The services of a tenant that has its own: allocates their images and subnet, then converges the containers.
import { EngineError } from '../engines/index.ts'
import { crowded, refitHosts, type HostState, type Reserved, type ServiceNeed } from '../placement/index.ts'
import { componentServices, type Placement } from '../stacks/index.ts'
import { removeAbandonedCluster } from './abandoned-cluster.ts'
import { failedBy } from './conditions.ts'
import { convergeCluster } from './converge-cluster.ts'
import { recordStep, type Reconciliation } from './reconciliation.ts'
import { unobservedHome, type Snapshot } from './reconcile-store.ts'
import { hasCluster, isDedicated, type Region } from './region.ts'
import { silentHosts, spreadOf } from './spread.ts'

/** The part of a reconciliation that concerns a tenant's own services. */
export type ServiceRun = Pick<
  Reconciliation,
  'store' | 'region' | 'failpoint' | 'clock' | 'epoch' | 'rejectedSubnets' | 'observations'
>

/** Allocates images and subnet, and records them before anything is created from them. @returns the snapshot with both */
export async function allocateServices(snapshot: Snapshot, run: ServiceRun, signal: AbortSignal): Promise<Snapshot> {
  if (!isDedicated(snapshot)) return snapshot
  return run.observations.observeFailure('Services', () => allocate(snapshot, run, signal))
}

async function allocate(snapshot: Snapshot, run: ServiceRun, signal: AbortSignal): Promise<Snapshot> {
  const { store, region, failpoint, epoch, rejectedSubnets } = run
  const { id, regionId } = snapshot
  let { images, subnet } = snapshot
  if (images === undefined) {
    await failpoint('allocate.before')
    images = await region.images(signal, snapshot.isolation)
    await store.pinImages(snapshot.id, images, epoch)
    await failpoint('allocate.pinned')
  } else if (snapshot.homeVersion === unobservedHome) {
    images = await replaceLostImages(snapshot, images, run, signal)
  }
  if (subnet === undefined) {
    subnet = await store.allocateSubnet(id, regionId, region.subnets, epoch, await region.subnetsInUse(signal))
    if (subnet === undefined) throw exhausted(region)
    await failpoint('allocate.subnet')
  } else if (rejectedSubnets.get(id) === subnet) {
    subnet = await store.moveSubnet(id, subnet, regionId, region.subnets, epoch, await region.subnetsInUse(signal))
    rejectedSubnets.delete(id)
    if (subnet === undefined) throw exhausted(region)
  }
  return assignHosts({ ...snapshot, images, subnet }, run, signal)
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
async function assignHosts(snapshot: Snapshot, run: ServiceRun, signal: AbortSignal): Promise<Snapshot> {
  const { region, failpoint, epoch } = run
  const { placements } = run.store
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

function regionFull(): EngineError {
  return new EngineError('REGION_FULL', 'No host of the region has enough free memory for the services of the plan.')
}

/**
 * Reports that the services of a tenant that is served do not have its sizes, because no host has the memory.
 * @throws EngineError REGION_FULL
 */
export function requireMemory({ lacksMemory }: Snapshot, { observations }: Pick<ServiceRun, 'observations'>): void {
  if (lacksMemory !== true) return
  const error = regionFull()
  observations.note('Services', failedBy(error))
  throw error
}

/** Replaces images that only the lost host had, as a restored control database names them. */
async function replaceLostImages(
  { id, isolation }: Snapshot,
  pinned: { postgres: string; runtime: string },
  { store, region, epoch }: ServiceRun,
  signal: AbortSignal,
): Promise<{ postgres: string; runtime: string }> {
  const present = await region.presentImages(pinned, isolation, signal)
  if (present.postgres !== pinned.postgres || present.runtime !== pinned.runtime)
    await store.replaceImages(id, present, epoch)
  return present
}

function exhausted({ subnets }: Region): EngineError {
  return new EngineError('SUBNETS_EXHAUSTED', `All ${subnets} subnets of the region are in use.`)
}

/**
 * Runs or stops the services as specified. A tenant with shared services has none.
 * @returns whether they are as specified; false if the next run should continue
 * @throws EngineError
 */
export async function convergeServices(snapshot: Snapshot, run: ServiceRun, signal: AbortSignal): Promise<boolean> {
  if (!isDedicated(snapshot)) return true
  if (run.region.spansHosts) observeHosts(snapshot, run)
  return run.observations.observe('Services', () => converge(snapshot, run, signal))
}

async function converge(snapshot: Snapshot, run: ServiceRun, signal: AbortSignal): Promise<boolean> {
  const { store, region, failpoint, epoch, clock } = run
  const { engine } = region
  if (engine === undefined) throw new EngineError('ENGINE_FAILED', 'The region has no engine for services.')
  const stack = await region.stack(snapshot, signal)
  await recordStep(snapshot, 'services', run)
  // A cluster that exists is repaired without etcd, too.
  if (snapshot.homeVersion === undefined) {
    await removeAbandonedCluster(snapshot, run, signal)
    await region.openCluster(snapshot, signal)
  }
  await failpoint('converge.before')
  const edge = async (side: 'before' | 'after') => {
    if (side === 'before') await store.confirmLead(epoch)
    await failpoint(side === 'before' ? 'converge.step-before' : 'converge.step-after')
  }
  let isConverged = true
  try {
    if (hasCluster(snapshot))
      isConverged = await convergeCluster(snapshot, stack, { engine, region, clock, edge }, signal)
    else await engine.converge(stack, signal, edge)
  } catch (error) {
    // The subnet belongs to a foreign network, or to one that the Engine has but does not list. The next run moves the tenant.
    if (error instanceof EngineError && error.code === 'SUBNET_TAKEN' && snapshot.subnet !== undefined)
      run.rejectedSubnets.set(snapshot.id, snapshot.subnet)
    throw error
  }
  await failpoint('converge.after')
  return isConverged
}

/**
 * Observes on how many hosts a tenant's services are, and whether they respond.
 * @throws EngineError HOST_UNREACHABLE for a single database, which cannot run on another host
 */
function observeHosts(snapshot: Snapshot, { region, observations }: ServiceRun): void {
  observations.note('Spread', spreadOf(snapshot, region))
  const [host] = silentHosts(snapshot, region)
  if (host === undefined || hasCluster(snapshot)) return
  const error = new EngineError('HOST_UNREACHABLE', `The host "${host}" with the tenant's database does not respond.`)
  observations.note('Services', failedBy(error))
  throw error
}
