// Removes a new cluster whose initialization was abandoned: its first member was lost while it created the database, or before another
// one had copied it. Patroni records in etcd that there is a database, so the other members wait for that one for ever.
import { awaitCluster, type ClusterState } from '../clusters/index.ts'
import { EngineError } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

/** Attempts to create a tenant after which its cluster may be removed. */
const minAttempts = 3
/** Time for an election, which needs 20 s and a loop, and for a database that is being created. */
export const primaryMilliseconds = 30_000
/** States of Patroni in which a member creates or copies the database. */
const progressStates: readonly string[] = ['initializing new cluster', 'creating replica', 'starting']

/** Whether a cluster has a primary, or a member that creates or copies the database. */
export function hasProgress({ primary, members }: ClusterState): boolean {
  return primary !== undefined || members.some(({ state }) => progressStates.includes(state))
}

/**
 * Removes the services and the data of a cluster that has no primary and was created empty, if it has never held a home. It is created
 * again afterwards. Nothing is removed as long as a host with a member may return.
 * @throws LeadershipLost
 */
export async function removeAbandonedCluster(
  snapshot: Pick<Snapshot, 'id' | 'isolation' | 'homeVersion' | 'placement' | 'operation' | 'generation'>,
  { store, region, clock, epoch }: Pick<Reconciliation, 'store' | 'region' | 'clock' | 'epoch'>,
  signal: AbortSignal,
): Promise<void> {
  const { id, homeVersion, placement, operation, generation } = snapshot
  if (!hasCluster(snapshot) || homeVersion !== undefined || (operation?.attempts ?? 0) < minAttempts) return
  if (Object.values(placement).some((host) => region.engine?.isDown(host) === true)) return
  // A database that a backup or a move has filled holds a home before it is recorded.
  const origin = await region.clusterOrigin(id, signal)
  if (origin !== 'creating' && origin !== 'created') return
  if (!(await remainsIdle(snapshot, { region, clock }, signal))) return
  const silent = await region.removeServices(id, 'cluster-per-tenant', signal, async () => {
    // Another control plane may have led meanwhile, and completed the tenant.
    await store.confirmLead(epoch)
    const present = await store.snapshot(id)
    if (present?.homeVersion !== undefined || present?.generation !== generation)
      throw new EngineError('UNHEALTHY', 'The tenant has changed meanwhile.')
  })
  requireRemoved(silent)
}

/**
 * Rejects a removal that hosts may have missed: with the keys of the cluster, a member that remains there does not continue while another
 * one begins.
 * @param silent the hosts that did not respond
 * @throws EngineError UNHEALTHY
 */
export function requireRemoved(silent: readonly string[]): void {
  if (silent.length > 0)
    throw new EngineError('UNHEALTHY', `The cluster begins again when the host "${silent.join('", "')}" responds.`)
}

/** Returns whether members of a cluster respond, but for a while none of them leads, or creates or copies the database. */
export async function remainsIdle(
  tenant: Pick<Snapshot, 'id' | 'isolation'>,
  { region, clock }: { region: Pick<Region, 'cluster'>; clock: Pick<Clock, 'now' | 'sleep'> },
  signal: AbortSignal,
): Promise<boolean> {
  let last: ClusterState | undefined
  const read = async (each: AbortSignal): Promise<ClusterState> => {
    last = undefined
    const state = await region.cluster(tenant, each)
    if (state === undefined) throw new EngineError('UNHEALTHY', 'The tenant has no cluster.')
    return (last = state)
  }
  const none = () => 'The cluster has no primary.'
  try {
    await awaitCluster(read, hasProgress, none, primaryMilliseconds, clock, signal)
    return false
  } catch {
    signal.throwIfAborted()
  }
  // Members that don't respond may be about to start.
  return last !== undefined
}
