// Named points at every boundary of the reconciler's work, where tests kill, throw or hang.
import { setTimeout as wait } from 'node:timers/promises'

/** Every failpoint there is, in the order a tenant passes them. */
export const failpointNames = [
  'begin.before',
  'begin.after',
  'place.before',
  'place.pinned',
  'place.subnet',
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
  'purge.home-dropped',
  'purge.step-after',
  'purge.services-removed',
  'purge.finished',
] as const
export type FailpointName = (typeof failpointNames)[number]

type Action = 'kill' | 'throw' | 'hang'

/** Called at a boundary; does nothing unless it is armed. */
export type Failpoint = (name: FailpointName) => void | Promise<void>

export const noFailpoints: Failpoint = () => undefined

/**
 * Reads `name=action@pass:count,…`; the action happens from that pass on (default the first), `count` times (default 1).
 * `hit` is told of every pass.
 * @throws Error for an unknown name or action
 */
export function parseFailpoints(
  text: string,
  kill: () => void,
  hit: (name: FailpointName) => void = () => undefined,
): Failpoint {
  if (text === '') return noFailpoints
  const armed = new Map<string, { action: Action; spare: number; left: number }>()
  for (const part of text.split(',')) {
    const match = /^([a-z.-]+)=(kill|throw|hang)(?:@(\d+))?(?::(\d+))?$/.exec(part)
    if (match?.[1] === undefined || !failpointNames.some((name) => name === match[1]))
      throw new Error(`unknown failpoint: ${part}`)
    armed.set(match[1], { action: match[2] as Action, spare: Number(match[3] ?? 1) - 1, left: Number(match[4] ?? 1) })
  }
  return async (name) => {
    hit(name)
    const point = armed.get(name)
    if (point === undefined || point.left === 0) return
    if (point.spare-- > 0) return
    point.left--
    if (point.action === 'kill') kill()
    if (point.action === 'throw') throw new Error(`failpoint ${name}`)
    // Longer than any time-out of the reconciler: what waits must be given up from outside.
    await wait(120_000, undefined, { ref: false })
    throw new Error(`failpoint ${name} hung`)
  }
}
