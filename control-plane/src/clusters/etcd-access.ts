// Gives a cluster its user and its keys in the region's etcd, and removes them. The programs run in a container of etcd, so that
// the password of etcd's root user never leaves it.
import { type Engine, EngineError, isUnreachable } from '../engines/index.ts'
import { clusterSettings, etcdClusterPassword, etcdName, memberNumbers, type EtcdCredentials } from '../stacks/index.ts'

const allNames: readonly string[] = memberNumbers.map(etcdName)
/** Exit code of a member that is in no cluster. */
const inNoCluster = 3

/**
 * The origin of a cluster's database:
 * - `none`: there is none yet.
 * - `creating`: a member is creating it empty, or was lost before it was complete.
 * - `created`: a member has created it empty.
 * - `adopted`: a backup or a move has filled it before the first member ran.
 */
export type ClusterOrigin = 'none' | 'creating' | 'created' | 'adopted'

interface EtcdAccessOptions {
  engine: Pick<Engine, 'exec'>
  /** ID of the region's own stack. */
  regionStackId: string
  etcd: EtcdCredentials
  /** Whether the region has several hosts. */
  spansHosts: boolean
}

/** Manages the users of a region's etcd, one for each cluster, with the ID of its stack. Each call may be repeated. */
export function etcdAccess({ engine, regionStackId, etcd, spansHosts }: EtcdAccessOptions) {
  /** Runs the command in the first of the members that runs and has a quorum. */
  const run = async (
    command: readonly string[],
    input: string,
    signal: AbortSignal,
    members = allNames,
  ): Promise<string> => {
    let failure: unknown
    let withoutCluster = 0
    for (const member of members) {
      try {
        const program = ['/usr/local/bin/etcd-access', ...command]
        const { code, stdout, stderr } = await engine.exec(regionStackId, member, program, { input, signal })
        if (code === 0) return stdout
        if (code === inNoCluster) withoutCluster++
        failure = new Error(`etcd-access ended with exit code ${code}: ${stderr.trim().slice(-300)}`)
      } catch (cause) {
        signal.throwIfAborted()
        if (isUnreachable(cause)) throw cause
        failure = cause
      }
    }
    if (withoutCluster === members.length) throw new EngineError('NOT_FOUND', "The region's etcd has not begun.")
    throw new EngineError('UNHEALTHY', "The region's etcd does not accept changes.", { cause: failure })
  }
  return {
    /** Creates the cluster's user, which may use the cluster's own keys only. @throws EngineError UNHEALTHY */
    add: async (cluster: string, signal: AbortSignal): Promise<void> =>
      void (await run(['add', cluster], `${etcdClusterPassword(etcd, cluster)}\n`, signal)),
    /** Returns where the database of the cluster is from. @throws EngineError UNHEALTHY */
    origin: async (cluster: string, signal: AbortSignal): Promise<ClusterOrigin> => {
      const begun = (await run(['begun', cluster], '', signal)).trim()
      if (begun === 'no') return 'none'
      return begun === 'creating' || begun === 'adopted' ? begun : 'created'
    },
    /**
     * Makes a data directory that exists the first one of the cluster, before any member runs.
     * @param systemIdentifier Postgres' identifier of the data directory
     * @throws EngineError UNHEALTHY
     */
    adopt: async (cluster: string, systemIdentifier: string, signal: AbortSignal): Promise<void> =>
      void (await run(
        ['adopt', cluster],
        `${systemIdentifier}\n${JSON.stringify(clusterSettings(spansHosts))}\n`,
        signal,
      )),
    /** Removes the cluster's user and keys. Absent ones are not an error. @throws EngineError UNHEALTHY */
    remove: async (cluster: string, signal: AbortSignal): Promise<void> =>
      void (await run(['remove', cluster], '', signal)),
    /**
     * Gives a member whose data is lost a new ID, so that it enters the cluster with an empty volume. The other members must have a quorum.
     * @param name name of its service. It must have no container that runs
     * @param others names of the other members that may have data
     * @throws EngineError UNHEALTHY, and NOT_FOUND if none of the others is in a cluster
     */
    replace: async (name: string, others: readonly string[], signal: AbortSignal): Promise<void> =>
      void (await run(['replace', name], '', signal, others)),
  }
}
