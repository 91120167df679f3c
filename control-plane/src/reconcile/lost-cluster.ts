// Lets a cluster begin again that was lost with its region, as a restored control database still names it.
import { type Engine, EngineError } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import { databaseVolumes, type Stack, volumeName } from '../stacks/index.ts'
import { remainsIdle } from './abandoned-cluster.ts'
import { unobservedHome, type Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

interface LostClusterDeps {
  region: Pick<Region, 'clusterOrigin' | 'openCluster' | 'closeCluster' | 'cluster'>
  engine: Pick<Engine, 'isDown' | 'observe'>
  clock: Pick<Clock, 'now' | 'sleep'>
  /** @throws LeadershipLost */
  confirmLead: () => Promise<void>
}

/**
 * Gives a cluster that the region's etcd does not know its user there, if its home was not observed since a recovery. It begins with
 * the data of its first member that starts, or empty if that has none. An empty one serves nothing: its home is missing until a backup is
 * restored. If the first member is lost while it creates the database, another one begins. No volume is removed, because one may hold
 * the data.
 * @throws EngineError UNHEALTHY if a host of the cluster does not respond, because a member there may have the data; VOLUME_MISSING for
 * a stopped cluster without data, which gets no empty volumes
 */
export async function beginLostCluster(
  snapshot: Pick<Snapshot, 'id' | 'isolation' | 'homeVersion' | 'placement'>,
  { state }: Pick<Stack, 'state'>,
  { region, engine, clock, confirmLead }: LostClusterDeps,
  signal: AbortSignal,
): Promise<void> {
  const { id, homeVersion } = snapshot
  if (!hasCluster(snapshot) || homeVersion !== unobservedHome) return
  const origin = await region.clusterOrigin(id, signal)
  const isCreating = origin === 'creating' && state === 'running'
  if (origin !== 'none' && !isCreating) return
  if (isCreating && !(await remainsIdle(snapshot, { region, clock }, signal))) return
  const host = Object.values(snapshot.placement).find((one) => engine.isDown(one))
  if (host !== undefined)
    throw new EngineError(
      'UNHEALTHY',
      `The cluster begins again when all its hosts respond. The host "${host}" does not.`,
    )
  if (isCreating) {
    await confirmLead()
    // A member that has returned may have completed the database meanwhile.
    if ((await region.clusterOrigin(id, signal)) !== 'creating') return
    await region.closeCluster(snapshot, signal)
  }
  if (state === 'running') return region.openCluster(snapshot, signal)
  const { volumes } = await engine.observe(id, signal)
  const data = new Set(databaseVolumes('cluster-per-tenant').map((name) => volumeName(id, name)))
  if (!volumes.some(({ name }) => data.has(name)))
    throw new EngineError('VOLUME_MISSING', 'The volumes of all members of the cluster and their data are gone.')
}
