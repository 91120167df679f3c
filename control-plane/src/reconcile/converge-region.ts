// Converges the stack of a region itself. On several hosts, its shared Postgres is a cluster, which serves meanwhile.
import { awaitQuorum, readCluster, stuckMember, type ClusterState } from '../clusters/index.ts'
import { type Engine, EngineError, isUnreachable, type ObservedHost, reachablePart } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import {
  clusterMembers,
  clusterRouters,
  etcdName,
  memberNumbers,
  type Stack,
  type Volume,
  volumeName,
} from '../stacks/index.ts'
import { createAbandonedRegion } from './abandoned-region.ts'
import { convergeCluster } from './converge-cluster.ts'
import type { Failpoint } from './failpoints.ts'
import type { Region } from './region.ts'

interface ConvergeRegionDeps {
  region: Pick<
    Region,
    | 'config'
    | 'ownCluster'
    | 'clusterOrigin'
    | 'openCluster'
    | 'closeCluster'
    | 'replaceEtcdMember'
    | 'cluster'
    | 'readyRouters'
    | 'switchOver'
    | 'copyAgain'
  >
  engine: Pick<Engine, 'observe' | 'converge' | 'repair' | 'exec' | 'removeServices' | 'isDown'>
  clock: Clock
  /** Called before and after each change. */
  edge: (side: 'before' | 'after') => Promise<void>
  failpoint: Failpoint
  log: Pick<Log, 'info' | 'warn'>
}

const convergeMilliseconds = 180_000
/** The first start of a cluster, and an election. */
const quorumMilliseconds = 40_000
const readMilliseconds = 5_000
/** Time in which a replica comes closer to the primary, if it can. */
const advanceMilliseconds = 40_000

/** A stack whose members of etcd have their volumes. */
interface WithMembers {
  /** In it, each member's volume must exist. */
  stack: Stack
  /** Observation of the stack, with the volumes that were created. */
  own: ObservedHost
  /** Names of the members, and of their volumes, that have none and may not get an empty one. */
  held: readonly string[]
}

/** Names of etcd's members and of their volumes. */
const etcdNames: readonly string[] = memberNumbers.map(etcdName)

/** Names of the services of the cluster. */
const clusterParts: ReadonlySet<string> = new Set([...clusterMembers, ...clusterRouters])

/** Returns the functions that converge and observe a region's own stack. */
export function createRegionConvergence({ region, engine, clock, edge, failpoint, log }: ConvergeRegionDeps) {
  const { ownCluster } = region
  /** An earlier state of the cluster, and when it was read. */
  let earlier: { state: ClusterState; at: number } | undefined
  const abandoned = createAbandonedRegion({ region, engine, clock, edge, log })

  const read = (signal: AbortSignal) => readCluster(engine, ownCluster?.id ?? '', signal)

  /** Lets a member copy its data again that has not come closer to the primary for a while. */
  const repairMember = async (state: ClusterState, signal: AbortSignal): Promise<void> => {
    const now = clock.now().getTime()
    if (earlier !== undefined && now - earlier.at < advanceMilliseconds) return
    const member = earlier && stuckMember(earlier.state, state)
    earlier = { state, at: now }
    if (member !== undefined && ownCluster !== undefined) await region.copyAgain(ownCluster.id, member, signal)
  }

  /** Makes another member the primary if its host is avoided. What fails is tried again at the next check. */
  const leaveHost = async (
    { id, services }: Stack,
    avoided: ReadonlySet<string>,
    { primary, candidates }: ClusterState,
    signal: AbortSignal,
  ): Promise<void> => {
    const isAvoided = (member: string) => avoided.has(services.find(({ name }) => name === member)?.host ?? '')
    const to = candidates.find((member) => !isAvoided(member))
    if (primary === undefined || to === undefined || !isAvoided(primary)) return
    await edge('before')
    await failpoint('region.leave-before')
    await region.switchOver(id, primary, to, signal)
    await failpoint('region.leave-after')
    await edge('after')
  }

  /** Checks that each member of etcd has a volume, so that a cluster can begin. @throws EngineError UNHEALTHY */
  const requireEtcd = async ({ id, volumes }: Stack, signal: AbortSignal) => {
    const { volumes: observed, unreachableHosts = [] } = await engine.observe(id, signal)
    const exists = (volume: string) => observed.some(({ name }) => name === volumeName(id, volume))
    const missing = volumes.find(({ name }) => etcdNames.includes(name) && !exists(name))
    if (missing === undefined) return
    const { host = '' } = volumes.find((volume) => unreachableHosts.includes(volume.host ?? '')) ?? missing
    throw new EngineError(
      'UNHEALTHY',
      `The region begins when all hosts of its etcd respond. The host "${host}" does not.`,
    )
  }

  /**
   * Starts etcd and the other services, so that the members of the cluster find their user of etcd.
   * @param specified the stack with everything that cannot be created now
   * @param holdsHomes whether tenants have homes in the cluster, so that no empty one may begin
   */
  const prepareCluster = async (
    cluster: NonNullable<Region['ownCluster']>,
    stack: Stack,
    specified: Stack,
    holdsHomes: boolean,
    signal: AbortSignal,
  ) => {
    await engine.converge(stack, signal, edge, clusterParts)
    await requireEtcd(specified, signal)
    if (holdsHomes && (await region.clusterOrigin(cluster.id, signal)) === 'none')
      throw new EngineError(
        'VOLUME_MISSING',
        "The region's etcd does not know the cluster in which tenants have homes. No empty one is started.",
      )
    await region.openCluster(cluster, signal)
  }

  /** Gives a member of etcd a new ID. @returns whether its volume may be created empty */
  const replaceMember = async (
    { name, mustExist }: Volume,
    others: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> => {
    const about = { region: region.config.id, member: name }
    try {
      await edge('before')
      await failpoint('region.member-before')
      await region.replaceEtcdMember(name, others, signal)
      await failpoint('region.member-after')
      await edge('after')
      log.info(about, 'A member of etcd whose volume is gone was replaced.')
      return true
    } catch (error) {
      if (signal.aborted || !(error instanceof EngineError) || isUnreachable(error)) throw error
      if (error.code === 'NOT_FOUND') return !mustExist
      log.warn({ ...about, err: error }, 'A member of etcd without a volume could not be replaced.')
      return false
    }
  }

  return {
    /**
     * Replaces members of etcd that have no volume on a host that responds, each after the other: an empty member enters a cluster only
     * with a new ID. One that has a container is not replaced before that is removed, because it could enter the cluster with a volume
     * that does not remain. Their empty volumes are created at once. If one is lost later, its member needs another ID, and a member
     * whose host responds meanwhile must have data.
     */
    async replaceMembers(stack: Stack, own: ObservedHost, signal: AbortSignal): Promise<WithMembers> {
      const exists = (name: string) => own.volumes.some((volume) => volume.name === volumeName(stack.id, name))
      const hasContainer = (name: string) => own.containers.some(({ labels }) => labels.service === name)
      const absent = reachablePart(stack, own).volumes.filter(({ name }) => etcdNames.includes(name) && !exists(name))
      const others = etcdNames.filter((name) => absent.every((volume) => volume.name !== name))
      const empty: string[] = []
      for (const volume of absent)
        if (!hasContainer(volume.name) && (await replaceMember(volume, others, signal))) empty.push(volume.name)
      const withMembers = (mayBeEmpty: readonly string[]): Stack => ({
        ...stack,
        volumes: stack.volumes.map((volume) =>
          etcdNames.includes(volume.name) ? { ...volume, mustExist: !mayBeEmpty.includes(volume.name) } : volume,
        ),
      })
      const held = absent.map(({ name }) => name).filter((name) => !empty.includes(name))
      const specified = withMembers([])
      if (empty.length === 0) return { stack: specified, own, held }
      const created = empty.map((name) => ({ component: `volume/${name}`, field: 'existence' }))
      await engine.repair(withMembers(empty), created, signal, edge)
      return { stack: specified, own: await engine.observe(stack.id, signal), held }
    },

    /**
     * Converges the stack.
     * @param own observation of the stack
     * @param holdsHomes whether tenants have homes in the region's shared Postgres
     * @param specified the stack with everything that cannot be created now
     * @throws EngineError
     */
    async converge(
      stack: Stack,
      own: ObservedHost,
      holdsHomes: boolean,
      signal: AbortSignal,
      specified = stack,
    ): Promise<void> {
      earlier = undefined
      abandoned.reset()
      const bounded = AbortSignal.any([signal, clock.timeout(convergeMilliseconds)])
      if (ownCluster === undefined) {
        await engine.converge(stack, bounded, edge)
        return
      }
      const hasParts = own.containers.some(({ labels }) => clusterParts.has(labels.service ?? ''))
      if (!hasParts) await prepareCluster(ownCluster, stack, specified, holdsHomes, bounded)
      try {
        while (!(await convergeCluster(ownCluster, stack, { engine, region, clock, edge }, bounded)))
          bounded.throwIfAborted()
      } catch (error) {
        // Members may wait for a host that is away. The other services don't.
        if (error instanceof EngineError && error.code === 'UNHEALTHY')
          await engine.converge(stack, bounded, edge, clusterParts)
        throw error
      }
      await awaitQuorum(read, quorumMilliseconds, clock, bounded)
    },

    /**
     * Checks that the shared cluster accepts writes, repairs a member that does not follow, and moves the primary to another host if its
     * own is emptied. A cluster that could not begin is removed, and begins again at the next sweep.
     * @param avoided IDs of the hosts that receive no services
     * @param mayHoldHomes whether tenants may have homes in the region's shared Postgres
     * @throws EngineError UNHEALTHY
     */
    async check(stack: Stack, avoided: ReadonlySet<string>, mayHoldHomes: boolean, signal: AbortSignal): Promise<void> {
      if (ownCluster === undefined) return
      const bounded = AbortSignal.any([signal, clock.timeout(readMilliseconds)])
      let state: ClusterState | undefined
      try {
        const present = (state = await read(bounded))
        await awaitQuorum(() => Promise.resolve(present), 0, clock, bounded)
      } catch (error) {
        // A member that returns after an outage has its time again.
        earlier = undefined
        const removing = AbortSignal.any([signal, clock.timeout(convergeMilliseconds)])
        await abandoned.check(stack, state, mayHoldHomes, removing)
        throw error
      }
      abandoned.reset()
      await repairMember(state, signal)
      await leaveHost(stack, avoided, state, signal)
    },
  }
}
