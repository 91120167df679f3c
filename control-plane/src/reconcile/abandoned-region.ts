// Removes a region's own cluster whose initialization was abandoned: its first member was lost while it created the database. Patroni
// records in etcd that a member creates one, so the others wait for that one for ever.
import type { ClusterState } from '../clusters/index.ts'
import { type Engine, EngineError } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { clusterMembers, clusterRouters, databaseVolumes, type Stack } from '../stacks/index.ts'
import { hasProgress, primaryMilliseconds, requireRemoved } from './abandoned-cluster.ts'
import type { Region } from './region.ts'

/** The dependencies of the removal. */
export interface AbandonedRegionDeps {
  region: Pick<Region, 'config' | 'ownCluster' | 'clusterOrigin' | 'closeCluster'>
  engine: Pick<Engine, 'removeServices' | 'isDown'>
  clock: Pick<Clock, 'now'>
  /** Called before and after each change. */
  edge: (side: 'before' | 'after') => Promise<void>
  log: Pick<Log, 'info'>
}

const parts: readonly string[] = [...clusterMembers, ...clusterRouters]

/** Returns the functions that observe a region's own cluster, and remove it if it was abandoned. */
export function createAbandonedRegion({ region, engine, clock, edge, log }: AbandonedRegionDeps) {
  const { ownCluster } = region
  /** Time from which on the cluster had no primary, and no member that creates or copies the database. */
  let idleSince: number | undefined

  const remove = async (cluster: NonNullable<typeof ownCluster>, signal: AbortSignal): Promise<void> => {
    const isIncomplete = async () => (await region.clusterOrigin(cluster.id, signal)) === 'creating'
    if (!(await isIncomplete())) return
    const silent = await engine.removeServices(
      cluster.id,
      { services: parts, volumes: databaseVolumes('cluster-per-tenant'), attachedContainers: [] },
      signal,
      async () => {
        await edge('before')
        // A member that has returned may have completed the database meanwhile.
        if (!(await isIncomplete())) throw new EngineError('UNHEALTHY', 'The cluster has begun meanwhile.')
      },
    )
    requireRemoved(silent)
    await edge('before')
    await region.closeCluster(cluster, signal)
    await edge('after')
    log.info({ region: region.config.id }, 'The shared cluster was never complete. It was removed, and begins again.')
  }

  return {
    /** Records that the cluster has a primary, or that its services change. */
    reset(): void {
      idleSince = undefined
    },

    /**
     * Removes the cluster with its data if it was without progress for a while, and its database was never complete, so that it has never
     * accepted a write. Nothing is removed if tenants may have homes in it, or as long as a host of it does not respond.
     * @param state undefined if no member responds, because members may be about to start
     * @param mayHoldHomes whether tenants may have homes in the cluster
     * @throws EngineError UNHEALTHY
     */
    async check(
      { services }: Stack,
      state: ClusterState | undefined,
      mayHoldHomes: boolean,
      signal: AbortSignal,
    ): Promise<void> {
      const now = clock.now().getTime()
      // A member whose host has returned has its time, too.
      const isDown = services.some(({ name, host }) => parts.includes(name) && engine.isDown(host ?? ''))
      idleSince = state === undefined || hasProgress(state) || isDown ? undefined : (idleSince ?? now)
      if (ownCluster === undefined || mayHoldHomes) return
      if (idleSince === undefined || now - idleSince < primaryMilliseconds) return
      await remove(ownCluster, signal)
    },
  }
}
