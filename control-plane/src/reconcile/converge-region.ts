// Converges the stack of a region itself. On several hosts, its shared Postgres is a cluster, which serves meanwhile.
import { awaitQuorum, readCluster, stuckMember, type ClusterState } from '../clusters/index.ts'
import type { Engine, ObservedHost } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import { clusterMembers, clusterRouters, type Stack } from '../stacks/index.ts'
import { convergeCluster } from './converge-cluster.ts'
import type { Region } from './region.ts'

interface ConvergeRegionDeps {
  region: Pick<Region, 'ownCluster' | 'openCluster' | 'cluster' | 'readyRouters' | 'switchOver' | 'copyAgain'>
  engine: Pick<Engine, 'observe' | 'converge' | 'exec'>
  clock: Clock
  /** Called before and after each change. */
  edge: (side: 'before' | 'after') => Promise<void>
}

const convergeMilliseconds = 180_000
/** The first start of a cluster, and an election. */
const quorumMilliseconds = 40_000
const readMilliseconds = 5_000
/** Time in which a replica comes closer to the primary, if it can. */
const advanceMilliseconds = 40_000

/** Returns the functions that converge and observe a region's own stack. */
export function createRegionConvergence({ region, engine, clock, edge }: ConvergeRegionDeps) {
  const { ownCluster } = region
  /** An earlier state of the cluster, and when it was read. */
  let earlier: { state: ClusterState; at: number } | undefined

  const read = (signal: AbortSignal) => readCluster(engine, ownCluster?.id ?? '', signal)

  /** Lets a member copy its data again that has not come closer to the primary for a while. */
  const repairMember = async (state: ClusterState, signal: AbortSignal): Promise<void> => {
    const now = clock.now().getTime()
    if (earlier !== undefined && now - earlier.at < advanceMilliseconds) return
    const member = earlier && stuckMember(earlier.state, state)
    earlier = { state, at: now }
    if (member !== undefined && ownCluster !== undefined) await region.copyAgain(ownCluster.id, member, signal)
  }

  return {
    /** Converges the stack. @param own what was observed of it @throws EngineError */
    async converge(stack: Stack, own: ObservedHost, signal: AbortSignal): Promise<void> {
      const bounded = AbortSignal.any([signal, clock.timeout(convergeMilliseconds)])
      if (ownCluster === undefined) {
        await engine.converge(stack, bounded, edge)
        return
      }
      const parts = new Set<string | undefined>([...clusterMembers, ...clusterRouters])
      if (!own.containers.some(({ labels }) => parts.has(labels.service))) {
        // A member needs its user of etcd when it starts.
        await engine.converge(stack, bounded, edge, new Set([...clusterMembers, ...clusterRouters]))
        await region.openCluster(ownCluster, bounded)
      }
      while (!(await convergeCluster(ownCluster, stack, { engine, region, clock, edge }, bounded)))
        bounded.throwIfAborted()
      await awaitQuorum(read, quorumMilliseconds, clock, bounded)
    },

    /** Checks that the shared cluster accepts writes, and repairs a member that does not follow. @throws EngineError UNHEALTHY */
    async check(signal: AbortSignal): Promise<void> {
      if (ownCluster === undefined) return
      const bounded = AbortSignal.any([signal, clock.timeout(readMilliseconds)])
      const state = await read(bounded)
      await awaitQuorum(() => Promise.resolve(state), 0, clock, bounded)
      await repairMember(state, signal)
    },
  }
}
