// Lets a new cluster begin again that can't begin: its first member was lost while it created the database, or before another one had
// copied it. etcd records that the cluster has a database, so the other members wait for that one.
import { awaitCluster, type ClusterState } from '../clusters/index.ts'
import { EngineError } from '../engines/index.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster } from './region.ts'

/** Attempts to create a tenant after which its cluster may begin again. */
const minAttempts = 3
/** Time for an election, which needs 20 s and a loop, and for a database that is being created. */
const primaryMilliseconds = 30_000
/** States of Patroni in which a member creates or copies the database. */
const beginningStates: readonly string[] = ['initializing new cluster', 'creating replica', 'starting']

/**
 * Removes the services and the data of a cluster that has begun, has no primary, and holds no home yet, so that it is created again. It
 * does nothing as long as a host with a member may return.
 */
export async function removeUnbegun(
  snapshot: Pick<Snapshot, 'id' | 'isolation' | 'homeVersion' | 'placement' | 'operation'>,
  { region, clock }: Pick<Reconciliation, 'region' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { id, homeVersion, placement, operation } = snapshot
  if (!hasCluster(snapshot) || homeVersion !== undefined || (operation?.attempts ?? 0) < minAttempts) return
  if (Object.values(placement).some((host) => region.engine?.isDown(host) === true)) return
  if (!(await region.hasBegunCluster(id, signal))) return
  let last: ClusterState | undefined
  const read = async (each: AbortSignal): Promise<ClusterState> => {
    last = undefined
    const state = await region.cluster(snapshot, each)
    if (state === undefined) throw new EngineError('UNHEALTHY', 'The tenant has no cluster.')
    return (last = state)
  }
  const isBeginning = ({ primary, members }: ClusterState) =>
    primary !== undefined || members.some(({ state }) => beginningStates.includes(state))
  const none = () => 'The cluster has no primary.'
  try {
    await awaitCluster(read, isBeginning, none, primaryMilliseconds, clock, signal)
  } catch {
    signal.throwIfAborted()
    // Members that don't respond may be about to start.
    if (last !== undefined) await region.removeServices(id, 'cluster-per-tenant', signal)
  }
}
