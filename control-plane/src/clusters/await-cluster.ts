// Waits for states of a cluster.
import { EngineError } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { ClusterState } from './cluster-state.ts'

const pollMilliseconds = 500

/**
 * Waits until a cluster is as wanted, and returns its state.
 * @param read reads the state; its errors are retried
 * @param milliseconds maximum time
 * @param describe returns the public message of a state that was not reached
 * @throws EngineError UNHEALTHY, or the last error of `read`, when the time is over
 */
export async function awaitCluster(
  read: (signal: AbortSignal) => Promise<ClusterState>,
  isWanted: (state: ClusterState) => boolean,
  describe: (state: ClusterState) => string,
  milliseconds: number,
  clock: Pick<Clock, 'now' | 'sleep'>,
  signal: AbortSignal,
): Promise<ClusterState> {
  const deadline = clock.now().getTime() + milliseconds
  for (;;) {
    let failure: unknown
    try {
      const state = await read(signal)
      if (isWanted(state)) return state
      failure = new EngineError('UNHEALTHY', describe(state))
    } catch (cause) {
      signal.throwIfAborted()
      failure = cause
    }
    if (clock.now().getTime() >= deadline) throw failure
    await clock.sleep(pollMilliseconds, signal)
  }
}

/** Waits until a primary runs and a replica confirms its commits: without one, every commit would wait. */
export async function awaitQuorum(
  read: (signal: AbortSignal) => Promise<ClusterState>,
  milliseconds: number,
  clock: Pick<Clock, 'now' | 'sleep'>,
  signal: AbortSignal,
): Promise<void> {
  const describe = ({ primary }: ClusterState) =>
    primary === undefined ? 'The cluster has no primary.' : `No replica confirms the commits of ${primary}.`
  await awaitCluster(read, ({ hasQuorum }) => hasQuorum, describe, milliseconds, clock, signal)
}

/** Waits until all replicas follow the primary. */
export async function awaitReplication(
  read: (signal: AbortSignal) => Promise<ClusterState>,
  milliseconds: number,
  clock: Pick<Clock, 'now' | 'sleep'>,
  signal: AbortSignal,
): Promise<void> {
  const describe = ({ notReplicating }: ClusterState) =>
    `These members do not follow the primary: ${notReplicating.join(', ')}.`
  await awaitCluster(read, ({ notReplicating }) => notReplicating.length === 0, describe, milliseconds, clock, signal)
}
