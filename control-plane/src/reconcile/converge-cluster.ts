// Converges the services of a cluster: what does not run at once, and what runs one by one, while the cluster serves.
import { isDeepStrictEqual } from 'node:util'
import {
  dataHeldBy,
  planCluster,
  servicesToChange,
  unknownCluster,
  withoutFormer,
  type ClusterState,
  type ClusterStep,
} from '../clusters/index.ts'
import { type Engine, EngineError, hasFormer, isUnreachable, type ObservedHost } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import { clusterMembers, memberIdentity, type Stack } from '../stacks/index.ts'
import type { Snapshot } from './reconcile-store.ts'
import type { Region } from './region.ts'

/** Time after which a run that has made changes lets other tenants continue first. Its remaining time suffices for one more change. */
const runMilliseconds = 40_000
/** Maximum time without a possible change. A member whose container was replaced follows the primary within seconds. */
const waitMilliseconds = 40_000
const pollMilliseconds = 500
/** Age of the state of a cluster from which on it is read again before a change. */
const freshMilliseconds = 5_000

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
      const { isWhole, isLedByOther, candidates } = dataHeldBy(identitiesOf(stack), state ?? unknownCluster)
      const [to] = candidates
      // The containers on former hosts are removed together, so none of them may be the primary.
      if (!isWhole || !isLedByOther || to === undefined || state?.primary === undefined) {
        await engine.converge(stack, signal, edge, undefined, isWhole)
        return true
      }
      await edge('before')
      const reason = await region.switchOver(stack.id, state.primary, to, signal)
      await edge('after')
      if (reason !== undefined) throw new EngineError('UNHEALTHY', `Patroni did not make ${to} the primary: ${reason}`)
      return false
    }
    if (changes > 0 && now() - begin >= runMilliseconds) return false
    const readyRouters = await region.readyRouters(stack.id, signal)
    const plan = async (): Promise<{ step: ClusterStep; at: number }> => {
      const at = now()
      const reported = await readState(region, snapshot, signal)
      const state = reported && withoutFormer(reported, existsOn(host))
      return { step: planCluster(stack, { host, state, readyRouters }), at }
    }
    const { step, at } = await plan()
    let obstacle: string | undefined
    if (step.do === 'converge') {
      const change = { step, at, plan, now, edge }
      if (!(await changeWhileValid(change, (checked) => engine.converge(stack, signal, checked, step.held)))) continue
    } else if (step.do === 'wait') obstacle = step.message
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

interface Change {
  step: ClusterStep
  /** When the state was read from which the step was planned, in milliseconds. */
  at: number
  /** Plans again from the present state. */
  plan: () => Promise<{ step: ClusterStep; at: number }>
  now: () => number
  edge: ConvergeClusterDeps['edge']
}

/**
 * Makes a change as long as it is the one that the state of the cluster allows. Another member may become the primary while an engine
 * responds slowly. @returns whether the change was made; false if another one should be
 */
async function changeWhileValid(
  { step, at, plan, now, edge }: Change,
  make: (edge: ConvergeClusterDeps['edge']) => Promise<void>,
): Promise<boolean> {
  let readAt = at
  const outdated = new Error('The state of the cluster has changed.')
  const checked = async (side: 'before' | 'after') => {
    if (side === 'before' && now() - readAt > freshMilliseconds) {
      const again = await plan()
      readAt = again.at
      if (!isDeepStrictEqual(again.step, step)) throw outdated
    }
    await edge(side)
  }
  try {
    await make(checked)
    return true
  } catch (error) {
    if (error === outdated) return false
    throw error
  }
}

/** Returns the names for Patroni of the members on their present hosts. */
function identitiesOf({ services }: Stack): string[] {
  return services
    .filter(({ name }) => clusterMembers.some((member) => member === name))
    .map(({ name, host }) => memberIdentity(name, host))
}

/** Returns whether a member of a name for Patroni runs, or is on a host that does not respond. */
function existsOn({ containers, unreachableHosts = [] }: ObservedHost): (identity: string) => boolean {
  const identities = new Set(
    containers
      .filter(({ state }) => state === 'running')
      .map(({ labels, host }) => memberIdentity(labels.service ?? '', host)),
  )
  for (const host of unreachableHosts) for (const member of clusterMembers) identities.add(memberIdentity(member, host))
  return (identity) => identities.has(identity)
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
