// Converges the services of a cluster: what does not run at once, and what runs one by one, while the cluster serves.
import { planCluster, servicesToChange, type ClusterState } from '../clusters/index.ts'
import { type Engine, EngineError, hasFormer, isUnreachable } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Stack } from '../stacks/index.ts'
import type { Snapshot } from './reconcile-store.ts'
import type { Region } from './region.ts'

/** Time after which a run that has made changes lets other tenants continue first. Its remaining time suffices for one more change. */
const runMilliseconds = 40_000
/** Maximum time without a possible change. A member whose container was replaced follows the primary within seconds. */
const waitMilliseconds = 40_000
const pollMilliseconds = 500

interface ConvergeClusterDeps {
  engine: Pick<Engine, 'observe' | 'converge'>
  region: Pick<Region, 'cluster' | 'readyRouters' | 'switchOver'>
  clock: Pick<Clock, 'now' | 'sleep'>
  /** Called before and after each change. */
  edge: (side: 'before' | 'after') => Promise<void>
}

/**
 * Converges a cluster's services.
 * @returns whether they are as specified; false if another run should continue
 * @throws EngineError UNHEALTHY with the reason why nothing could be changed for a while
 */
export async function convergeCluster(
  snapshot: Pick<Snapshot, 'id' | 'isolation'>,
  stack: Stack,
  { engine, region, clock, edge }: ConvergeClusterDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const now = () => clock.now().getTime()
  const begin = now()
  let changes = 0
  let lastChange = begin
  for (;;) {
    const host = await engine.observe(stack.id, signal)
    if (servicesToChange(stack, host).length === 0) {
      const state = hasFormer(stack, host) ? await readState(region, snapshot, signal) : undefined
      await engine.converge(stack, signal, edge, undefined, state !== undefined && isComplete(state))
      return true
    }
    if (changes > 0 && now() - begin >= runMilliseconds) return false
    const [state, readyRouters] = await Promise.all([
      readState(region, snapshot, signal),
      region.readyRouters(stack.id, signal),
    ])
    const step = planCluster(stack, { host, state, readyRouters })
    let obstacle: string | undefined
    if (step.do === 'converge') await engine.converge(stack, signal, edge, step.held)
    else if (step.do === 'wait') obstacle = step.message
    else {
      await edge('before')
      const reason = await region.switchOver(stack.id, step.from, step.to, signal)
      if (reason !== undefined) obstacle = `Patroni did not make ${step.to} the primary: ${reason}`
      await edge('after')
    }
    if (obstacle === undefined) {
      changes++
      lastChange = now()
    } else {
      if (now() - lastChange >= waitMilliseconds) throw new EngineError('UNHEALTHY', obstacle)
      await clock.sleep(pollMilliseconds, signal)
    }
  }
}

/** Whether all members have the data, so that no copy of it on a former host is needed. */
function isComplete({ hasQuorum, notReplicating }: ClusterState): boolean {
  return hasQuorum && notReplicating.length === 0
}

/** Reads a cluster's state; undefined if no member responds. */
async function readState(
  region: Pick<Region, 'cluster'>,
  snapshot: Pick<Snapshot, 'id' | 'isolation'>,
  signal: AbortSignal,
): Promise<ClusterState | undefined> {
  try {
    return await region.cluster(snapshot, signal)
  } catch (cause) {
    signal.throwIfAborted()
    if (isUnreachable(cause)) throw cause
    return undefined
  }
}
