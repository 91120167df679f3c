// Carries out the switchover of a cluster that an operator requested. It reads the cluster's state first, so that it continues
// after an interruption at any point, and never switches over twice.
import { awaitCluster, type ClusterState } from '../clusters/index.ts'
import { EngineError } from '../engines/index.ts'
import type { Switchover } from '../tenants/index.ts'
import { recordStep, type Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'

/** A failover that was in progress before takes 20 s and a loop. */
const primaryMilliseconds = 40_000
/** A replica confirms no commits for a moment after it has begun to follow another primary. */
const candidateMilliseconds = 10_000
const doneMilliseconds = 20_000

/** Returns the next step of a switchover. Pure. */
export function planSwitchover(
  { from, to }: Switchover,
  { primary, candidates, members }: ClusterState,
): { do: 'nothing' } | { do: 'switch-over'; to: string } | { do: 'fail'; message: string } {
  if (to === null ? primary !== from : primary === to) return { do: 'nothing' }
  const chosen = to ?? candidates[0]
  if (chosen !== undefined && candidates.includes(chosen)) return { do: 'switch-over', to: chosen }
  const states = members.map(({ name, role, state }) => `${name}: ${role}${state === '' ? '' : `, ${state}`}`)
  return {
    do: 'fail',
    message: `${to === null ? 'No replica can' : `The member ${to} cannot`} become the primary. ${states.join('; ')}.`,
  }
}

/**
 * Carries out a requested switchover.
 * @returns why it is not possible, in a public message; undefined when it is done or none was requested
 * @throws EngineError UNHEALTHY if the cluster does not respond
 */
export async function carryOutSwitchover(
  snapshot: Snapshot,
  run: Reconciliation,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { region, clock, failpoint } = run
  const wanted = snapshot.operation?.switchover
  if (wanted === undefined) return undefined
  const read = async (each: AbortSignal) => {
    const state = await region.cluster(snapshot, each)
    if (state === undefined) throw new EngineError('UNHEALTHY', 'The tenant has no cluster.')
    return state
  }
  await recordStep(snapshot, 'switchover', run)
  await failpoint('switchover.before')
  const hasPrimary = ({ primary }: ClusterState) => primary !== undefined
  const none = () => 'The cluster has no primary.'
  const found = await awaitCluster(read, hasPrimary, none, primaryMilliseconds, clock, signal)
  const isPossible = (state: ClusterState) => hasPrimary(state) && planSwitchover(wanted, state).do !== 'fail'
  const state = isPossible(found)
    ? found
    : await awaitCluster(read, isPossible, none, candidateMilliseconds, clock, signal).catch(() => found)
  signal.throwIfAborted()
  const step = planSwitchover(wanted, state)
  if (step.do === 'fail') return step.message
  if (step.do === 'nothing' || state.primary === undefined) return undefined
  const reason = await region.switchOver(snapshot.id, state.primary, step.to, signal)
  await failpoint('switchover.sent')
  if (reason !== undefined) {
    // A failover may have done it meanwhile.
    const isReached = planSwitchover(wanted, await read(signal)).do === 'nothing'
    return isReached ? undefined : `Patroni did not make ${step.to} the primary: ${reason}`
  }
  const isDone = ({ primary }: ClusterState) => primary === step.to
  const describe = () => `The member ${step.to} does not run as the primary yet.`
  await awaitCluster(read, isDone, describe, doneMilliseconds, clock, signal)
  await failpoint('switchover.done')
  return undefined
}
