// Named points at every boundary of the reconciler's work, and of some jobs, at which tests kill, throw or hang.
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
const allFailpointNames = [...failpointNames, ...jobFailpointNames, ...clusterFailpointNames]
export type FailpointName = (typeof allFailpointNames)[number]

type Action = 'kill' | 'throw' | 'hang'

/** Reaches a boundary, and does nothing unless its point is armed. */
export type Failpoint = (name: FailpointName) => void | Promise<void>

export const noFailpoints: Failpoint = () => undefined

/**
 * Parses `name=action@pass:count,…`. The action happens from that pass on (default the first), `count` times (default
 * 1).
 * @param hit called at every pass
 * @throws Error for an unknown name or action
 */
export function parseFailpoints(
  text: string,
  kill: () => void,
  hit: (name: FailpointName) => void = () => undefined,
): Failpoint {
  if (text === '') return noFailpoints
  const armed = new Map<string, { action: Action; skip: number; remaining: number }>()
  for (const part of text.split(',')) {
    const match = /^([a-z.-]+)=(kill|throw|hang)(?:@(\d+))?(?::(\d+))?$/.exec(part)
    if (match?.[1] === undefined || !allFailpointNames.some((name) => name === match[1]))
      throw new Error(`Invalid failpoint "${part}". Allowed: a known name, and kill, throw or hang.`)
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
    if (point.action === 'kill') kill()
    if (point.action === 'throw') throw new Error(`The failpoint ${name} was reached.`)
    // This wait exceeds all time limits of the reconciler: the caller must abort it.
    await wait(120_000, undefined, { ref: false })
    throw new Error(`The failpoint ${name} hung.`)
  }
}
