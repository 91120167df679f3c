// States of a cluster, as tests need them: `postgres-1` is the primary, and the others follow it.
import { clusterState, type ClusterState } from '#control-plane/clusters/cluster-state.ts'

/** A member as Patroni reports it. */
export interface ReportedMember {
  name: string
  role: string
  state: string
  timeline: number
  lag?: number | string
}

const names = ['postgres-1', 'postgres-2', 'postgres-3']

/** Returns Patroni's report of a cluster. @param change members that differ from a healthy one; null for an absent one */
export function patroniReport(
  primary = 'postgres-1',
  change: Record<string, Partial<ReportedMember> | null> = {},
): string {
  const members = names.flatMap((name) => {
    const healthy: ReportedMember =
      name === primary
        ? { name, role: 'leader', state: 'running', timeline: 1 }
        : { name, role: 'quorum_standby', state: 'streaming', timeline: 1, lag: 0 }
    const changed = change[name]
    return changed === null ? [] : [{ ...healthy, ...changed }]
  })
  return JSON.stringify({ members })
}

/** Returns the state of a cluster. The parameters are those of `patroniReport`. */
export function stateOf(...report: Parameters<typeof patroniReport>): ClusterState {
  return read(patroniReport(...report))
}

function read(report: string): ClusterState {
  const state = clusterState(report)
  if (state === undefined) throw new Error('the report was not read')
  return state
}

/**
 * Returns the state of a cluster on several hosts, whose names of members contain these. @param placement hosts of its members, of which
 * the first is the primary
 */
export function servingOn(
  placement: Readonly<Record<string, string>>,
  change: Parameters<typeof patroniReport>[1] = {},
): ClusterState {
  const { members } = JSON.parse(patroniReport('postgres-1', change)) as { members: ReportedMember[] }
  const located = members.map((member) => ({ ...member, name: `${member.name}-${placement[member.name] ?? ''}` }))
  return read(JSON.stringify({ members: located }))
}
