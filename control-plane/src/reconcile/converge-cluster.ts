// Converges the services of a cluster: what does not run at once, and what runs one by one, while the cluster serves.
import {
  dataHeldBy,
  planCluster,
  runningServices,
  servicesToChange,
  unknownCluster,
  withoutFormer,
  type ClusterState,
  type ClusterStep,
} from '../clusters/index.ts'
import { type Engine, EngineError, hasFormer, type ObservedHost, returnedContainers } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import { clusterMembers, isClusterMember, memberIdentity, type Stack } from '../stacks/index.ts'
import { changeWhileValid, decideNow, type Edge } from './change-while-valid.ts'
import { readOrUndefined } from './read-or-undefined.ts'
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
  edge: Edge
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
  if (stack.state === 'stopped') {
    await engine.converge(stack, signal, edge)
    return true
  }
  const now = () => clock.now().getTime()
  /** Makes another member the primary. @returns why Patroni did not do it; undefined if it did */
  const switchOver = async (from: string, to: string): Promise<string | undefined> => {
    await edge('before')
    const reason = await region.switchOver(stack.id, from, to, signal)
    await edge('after')
    return reason === undefined ? undefined : `Patroni did not make ${to} the primary: ${reason}`
  }
  const begin = now()
  let changes = 0
  let lastChange = begin
  for (;;) {
    const host = await engine.observe(stack.id, signal)
    const toChange = servicesToChange(stack, host)
    if (toChange.length === 0) {
      let state: ClusterState | undefined
      const decide = async () => {
        state = hasFormer(stack, host)
          ? await readOrUndefined(() => region.cluster(snapshot, signal), signal)
          : undefined
        return dataHeldBy(identitiesOf(stack), state ?? unknownCluster)
      }
      const decided = await decideNow({ decide, now })
      const { isWhole, isLedByOther, candidates } = decided.decision
      const [to] = candidates
      // The containers on former hosts are removed together, so none of them may be the primary.
      if (!isWhole || !isLedByOther || to === undefined || state?.primary === undefined) {
        const mayEnd = endable(stack, host, { changed: [], isWhole })
        const change = { decide, mayEnd, now, edge }
        const make = (checked: Edge) => engine.converge(stack, signal, checked, undefined, isWhole)
        if (await changeWhileValid(decided, change, make)) return true
        continue
      }
      const failure = await switchOver(state.primary, to)
      if (failure !== undefined) throw new EngineError('UNHEALTHY', failure)
      return false
    }
    if (changes > 0 && now() - begin >= runMilliseconds) return false
    const readyRouters = await region.readyRouters(stack.id, signal)
    const decide = async (): Promise<ClusterStep> => {
      const reported = await readOrUndefined(() => region.cluster(snapshot, signal), signal)
      const state = reported && withoutFormer(reported, existsOn(host))
      return planCluster(stack, { host, state, readyRouters })
    }
    const decided = await decideNow({ decide, now })
    const { decision: step } = decided
    let obstacle: string | undefined
    if (step.do === 'converge') {
      const changed = toChange.filter((name) => !step.held.has(name))
      const mayEnd = endable(stack, host, { changed, isWhole: false })
      const make = (checked: Edge) => engine.converge(stack, signal, checked, step.held)
      if (!(await changeWhileValid(decided, { decide, mayEnd, now, edge }, make))) continue
    } else if (step.do === 'wait') obstacle = step.message
    else obstacle = await switchOver(step.from, step.to)
    if (obstacle === undefined) {
      changes++
      lastChange = now()
    } else {
      if (now() - lastChange >= waitMilliseconds) throw new EngineError('UNHEALTHY', obstacle)
      await clock.sleep(pollMilliseconds, signal)
    }
  }
}

/**
 * Returns the names of the containers that a change may end: those of services that do not run, or that are changed.
 * @param isWhole whether those on former hosts are not needed any more
 */
function endable(
  stack: Stack,
  host: ObservedHost,
  { changed, isWhole }: { changed: readonly string[]; isWhole: boolean },
): Set<string> {
  const running = runningServices(stack, host).filter((name) => !changed.includes(name))
  const former = returnedContainers(stack, host)
  const may = host.containers.filter((container) =>
    former.includes(container) ? isWhole : !running.includes(container.labels.service ?? ''),
  )
  return new Set(may.map(({ name }) => name))
}

/** Returns the names for Patroni of the members on their present hosts. */
function identitiesOf({ services }: Stack): string[] {
  return services.filter(({ name }) => isClusterMember(name)).map(({ name, host }) => memberIdentity(name, host))
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
