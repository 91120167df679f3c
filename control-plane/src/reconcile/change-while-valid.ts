// Makes a change of a cluster only as long as it is the right one: another member may become the primary while an engine responds
// slowly, and a host may respond again on which, or from which, services should move.
import { isDeepStrictEqual } from 'node:util'
import type { Step } from '../engines/index.ts'

/** Age of a decision in milliseconds from which on it is made again before a change. */
const freshMilliseconds = 5_000

/** Called before and after each round of steps. */
export type Edge = (side: 'before' | 'after', steps?: readonly Step[]) => Promise<void>

interface ValidChange<T> {
  /** Decides from the present state of the cluster. */
  decide: () => Promise<T>
  /** Names of the containers that the change may end. */
  mayEnd: ReadonlySet<string>
  now: () => number
  edge: Edge
}

/** A decision, and when the state was read from which it follows, in milliseconds. */
export interface Decided<T> {
  decision: T
  at: number
}

/** Decides, and notes since when that is known. */
export async function decideNow<T>({ decide, now }: Pick<ValidChange<T>, 'decide' | 'now'>): Promise<Decided<T>> {
  const at = now()
  return { decision: await decide(), at }
}

/**
 * Makes a change as long as the decision for it would be the same.
 * @param make makes it, and calls the edge that it gets
 * @returns whether the change was made; false if another one should be
 */
export async function changeWhileValid<T>(
  { decision, at }: Decided<T>,
  change: ValidChange<T>,
  make: (edge: Edge) => Promise<void>,
): Promise<boolean> {
  const outdated = new Error('The state of the cluster has changed.')
  let readAt = at
  const checked: Edge = async (side, steps = []) => {
    if (side === 'before' && endedBy(steps).some((name) => !change.mayEnd.has(name))) throw outdated
    if (side === 'before' && change.now() - readAt > freshMilliseconds) {
      const again = await decideNow(change)
      readAt = again.at
      if (!isDeepStrictEqual(again.decision, decision)) throw outdated
    }
    await change.edge(side, steps)
  }
  try {
    await make(checked)
    return true
  } catch (error) {
    if (error === outdated) return false
    throw error
  }
}

/** Returns the names of the containers that steps end. */
function endedBy(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => {
    if (step.do === 'take-over') return step.from
    return step.do === 'remove-container' || step.do === 'stop-container' ? [step.container] : []
  })
}
