// Waits until a tenant's cluster is complete: a primary whose commits are confirmed, and replicas that follow it.
import { awaitQuorum, awaitReplication, stuckMember, unknownCluster } from '../clusters/index.ts'
import { EngineError } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

/** A failover takes 20 s and a loop. A replica that copies a large home takes longer, and then the work is retried. */
const clusterMilliseconds = 40_000
const checkMilliseconds = 5_000

/**
 * Whether a tenant's cluster has all that its conditions require at present. It is true for a tenant without a cluster, or
 * whose cluster should not run. Never throws an error of the cluster.
 */
export async function isClusterComplete(
  tenant: Snapshot,
  region: Pick<Region, 'cluster'>,
  clock: Pick<Clock, 'timeout'>,
  signal: AbortSignal,
): Promise<boolean> {
  if (!hasCluster(tenant) || tenant.desired !== 'active') return true
  const bounded = AbortSignal.any([signal, clock.timeout(checkMilliseconds)])
  const state = await region.cluster(tenant, bounded).catch(() => undefined)
  signal.throwIfAborted()
  return state?.hasQuorum === true && state.notReplicating.length === 0
}

/**
 * Observes the conditions `Quorum` and `Replicating`. A tenant without a cluster has neither. A member that can't follow the primary
 * any more is copied again. @throws EngineError UNHEALTHY
 */
export async function observeCluster(
  snapshot: Snapshot,
  { region, clock, observations }: Reconciliation,
  signal: AbortSignal,
): Promise<void> {
  if (!hasCluster(snapshot)) return
  const read = async (each: AbortSignal) => {
    const state = await region.cluster(snapshot, each)
    if (state === undefined) throw new EngineError('UNHEALTHY', 'The tenant has no cluster.')
    return state
  }
  await observations.observe('Quorum', () => awaitQuorum(read, clusterMilliseconds, clock, signal))
  await observations.observe('Replicating', async () => {
    let [first, last] = [unknownCluster, unknownCluster]
    const readNext = async (each: AbortSignal) => {
      // A state that can't be read any more must not count as unchanged.
      last = unknownCluster
      last = await read(each)
      if (first === unknownCluster) first = last
      return last
    }
    try {
      await awaitReplication(readNext, clusterMilliseconds, clock, signal)
    } catch (error) {
      signal.throwIfAborted()
      const member = stuckMember(first, last)
      if (member !== undefined) await region.copyAgain(snapshot.id, member, signal)
      throw error
    }
  })
}
