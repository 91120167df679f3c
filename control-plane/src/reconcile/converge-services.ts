// The services of a tenant that has its own: allocates their images and subnet, then converges the containers.
import { EngineError, type Step } from '../engines/index.ts'
import { removeAbandonedCluster } from './abandoned-cluster.ts'
import { assignHosts, regionFull } from './assign-hosts.ts'
import type { Edge } from './change-while-valid.ts'
import { failedBy } from './conditions.ts'
import { convergeCluster } from './converge-cluster.ts'
import { beginLostCluster } from './lost-cluster.ts'
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
  return assignHosts({ ...snapshot, images, subnet }, { ...run, placements: store.placements }, signal)
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
  } else {
    const confirmLead = () => store.confirmLead(epoch)
    await beginLostCluster(snapshot, stack, { region, engine, clock, confirmLead }, signal)
  }
  await failpoint('converge.before')
  const edge: Edge = async (side, steps = []) => {
    if (side === 'before') await store.confirmLead(epoch)
    await failpoint(side === 'before' ? 'converge.step-before' : 'converge.step-after')
    if (steps.some(isRelease)) await failpoint(side === 'before' ? 'release.before' : 'release.after')
  }
  let isConverged = true
  try {
    if (hasCluster(snapshot))
      isConverged = await convergeCluster(snapshot, stack, { engine, region, clock, edge }, signal)
    else {
      // After a restore on another host, the former one may return with its containers. The data there stays.
      const areReplaced = region.spansHosts
      await engine.converge(stack, signal, edge, undefined, areReplaced)
    }
  } catch (error) {
    // The subnet belongs to a foreign network, or to one that the Engine has but does not list. The next run moves the tenant.
    if (error instanceof EngineError && error.code === 'SUBNET_TAKEN' && snapshot.subnet !== undefined)
      run.rejectedSubnets.set(snapshot.id, snapshot.subnet)
    throw error
  }
  await failpoint('converge.after')
  return isConverged
}

/** Whether a step removes data from a host on which the service does not run any more. */
function isRelease(step: Step): boolean {
  return step.do === 'remove-volume' && step.host !== undefined
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
