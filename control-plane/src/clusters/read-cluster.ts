// Reads the state of a cluster from the first member that responds.
import { type Engine, EngineError, isUnreachable } from '../engines/index.ts'
import { clusterMembers, patroniPort } from '../stacks/index.ts'
import { clusterState, type ClusterState } from './cluster-state.ts'

const command = ['/usr/local/bin/http-get', String(patroniPort), '/cluster']
const headEnd = '\r\n\r\n'

/** Reads the state of a cluster. @throws EngineError UNHEALTHY if no member responds */
export async function readCluster(
  engine: Pick<Engine, 'exec'>,
  cluster: string,
  signal: AbortSignal,
): Promise<ClusterState> {
  let failure: unknown
  for (const member of clusterMembers) {
    try {
      const { stdout } = await engine.exec(cluster, member, command, { signal })
      const state = clusterState(stdout.slice(stdout.indexOf(headEnd) + headEnd.length))
      if (state !== undefined) return state
      failure = new Error(`Patroni of ${member} responded with: ${stdout.slice(0, 200)}`)
    } catch (cause) {
      signal.throwIfAborted()
      if (isUnreachable(cause)) throw cause
      failure = cause
    }
  }
  throw new EngineError('UNHEALTHY', 'No member of the cluster responds.', { cause: failure })
}
