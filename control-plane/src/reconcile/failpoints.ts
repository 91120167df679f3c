// Named points at every boundary of the reconciler's work, and of some jobs, at which tests kill, stop, throw or hang.
import { setTimeout as wait } from 'node:timers/promises'

/** All failpoints, in the order in which a tenant passes them. */
export const failpointNames = [
  'begin.before',
  'begin.after',
  'allocate.before',
  'allocate.pinned',
  'allocate.subnet',
  'converge.before',
  'converge.step-before',
  'converge.step-after',
  'converge.after',
  'database.before',
  'database.created',
  'database.prepared',
  'home.before',
  'home.created',
  'home.migrated',
  'home.recorded',
  'password.before',
  'password.set',
  'password.recorded',
  'service-passwords.before',
  'service-passwords.set',
  'service-passwords.recorded',
  'observe.before',
  'observe.runtime',
  'observe.after',
  'halt.before',
  'halt.unrouted',
  'halt.stopped',
  'finish.before',
  'finish.after',
  'delete.before',
  'delete.unrouted',
  'delete.waiting',
  'purge.before',
  'purge.unpublished',
  'purge.data-removed',
  'purge.sessions-ended',
  'purge.part-dropped',
  'purge.home-dropped',
  'purge.step-after',
  'purge.services-removed',
  'purge.finished',
] as const
/** The failpoints of the replacement of a superuser's password, which is a job of the leader. */
export const jobFailpointNames = [
  'superuser-password.before',
  'superuser-password.set',
  'superuser-password.recorded',
] as const
/** The failpoints of a switchover, which only a tenant with a cluster passes. */
export const clusterFailpointNames = ['switchover.before', 'switchover.sent', 'switchover.done'] as const
/** The failpoints of a repair of single differences, which an operator requests. */
export const repairFailpointNames = [
  'repair.before',
  'repair.step-before',
  'repair.step-after',
  'repair.after',
] as const
/** The failpoints of placements in regions with several hosts: the choice of hosts, and the removal of data from former ones. */
export const placementFailpointNames = [
  'allocate.chosen',
  'allocate.placed',
  'release.before',
  'release.after',
] as const
/** The failpoints of changes of a region's own services, and of the removal of what remains of deleted tenants. */
export const regionFailpointNames = ['region.step-before', 'region.step-after', 'sweep.removed'] as const
/** The failpoints of a region's own clusters: a primary that leaves an avoided host, and a member of etcd that gets a new ID. */
export const regionClusterFailpointNames = [
  'region.leave-before',
  'region.leave-after',
  'region.member-before',
  'region.member-after',
] as const
/** The failpoints of the record of a lost host, which is a job of the leader. */
export const hostFailpointNames = ['lost.before', 'lost.recorded'] as const
/** The failpoints of a move between shared databases, which is a job of the leader. */
export const moveFailpointNames = [
  'move.before',
  'move.prepared',
  'move.published',
  'move.slot-created',
  'move.copied',
  'move.caught-up',
  'move.compared',
  'move.held',
  'move.locked',
  'move.agreed',
  'move.renamed',
  'move.recorded',
  'move.released',
  'move.retained',
  'move.cleaned',
] as const
/** The failpoints of a move after which it can be reverted, and of the time in which it can. */
export const reverseFailpointNames = [
  'move.reverse-published',
  'move.reverse-prepared',
  'reverse.half-applied',
  'reverse.applied',
  'reverse.ended',
  'reverse.stream-removed',
  'reverse.home-removed',
  'revert.settled',
] as const
/** The failpoints of a rebalance's moves of services and switchovers, which a job of the leader begins. */
export const rebalanceFailpointNames = ['rebalance.chosen', 'rebalance.begun', 'rebalance.settled'] as const
const allFailpointNames = [
  ...failpointNames,
  ...jobFailpointNames,
  ...clusterFailpointNames,
  ...placementFailpointNames,
  ...regionFailpointNames,
  ...regionClusterFailpointNames,
  ...hostFailpointNames,
  ...repairFailpointNames,
  ...moveFailpointNames,
  ...reverseFailpointNames,
  ...rebalanceFailpointNames,
]
export type FailpointName = (typeof allFailpointNames)[number]

type Action = 'kill' | 'stop' | 'throw' | 'hang'

/** Reaches a boundary, and does nothing unless its point is armed. */
export type Failpoint = (name: FailpointName) => void | Promise<void>

export const noFailpoints: Failpoint = () => undefined

/**
 * Parses `name=action@pass:count,…`. The action happens from that pass on (default the first), `count` times (default
 * 1). A stopped process continues there after SIGCONT.
 * @param hit called at every pass
 * @throws Error for an unknown name or action
 */
export function parseFailpoints(
  text: string,
  send: (signal: 'SIGKILL' | 'SIGSTOP') => void,
  hit: (name: FailpointName) => void = () => undefined,
): Failpoint {
  if (text === '') return noFailpoints
  const armed = new Map<string, { action: Action; skip: number; remaining: number }>()
  for (const part of text.split(',')) {
    const match = /^([a-z.-]+)=(kill|stop|throw|hang)(?:@(\d+))?(?::(\d+))?$/.exec(part)
    if (match?.[1] === undefined || !allFailpointNames.some((name) => name === match[1]))
      throw new Error(`Invalid failpoint "${part}". Allowed: a known name, and kill, stop, throw or hang.`)
    armed.set(match[1], {
      action: match[2] as Action,
      skip: Number(match[3] ?? 1) - 1,
      remaining: Number(match[4] ?? 1),
    })
  }
  return async (name) => {
    hit(name)
    const point = armed.get(name)
    if (point === undefined || point.remaining === 0) return
    if (point.skip-- > 0) return
    point.remaining--
    if (point.action === 'kill') send('SIGKILL')
    if (point.action === 'stop') {
      send('SIGSTOP')
      return
    }
    if (point.action === 'throw') throw new Error(`The failpoint ${name} was reached.`)
    // This wait exceeds all time limits of the reconciler: the caller must abort it.
    await wait(120_000, undefined, { ref: false })
    throw new Error(`The failpoint ${name} hung.`)
  }
}
