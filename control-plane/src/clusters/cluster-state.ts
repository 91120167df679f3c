// What Patroni reports of a cluster's members, and what follows from it. Pure.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { clusterMembers } from '../stacks/index.ts'

const ReportedMember = Type.Object({
  name: Type.String(),
  role: Type.String(),
  state: Type.String(),
  timeline: Type.Optional(Type.Number()),
  /** Bytes that the member has not replayed; `unknown` while Patroni does not know them. */
  lag: Type.Optional(Type.Union([Type.Number(), Type.String()])),
})
const Report = Type.Object({ members: Type.Array(ReportedMember) })
type Reported = Static<typeof ReportedMember>

/** A member of a cluster, as Patroni last recorded it. */
export interface ClusterMember {
  /** Name of the member's service. */
  name: string
  /** `absent` for a member that Patroni does not know. */
  role: 'primary' | 'replica' | 'absent'
  /** Patroni's state, for example `running` or `streaming`; empty for an absent member. */
  state: string
  /** Bytes of the log that a replica has not replayed; null if unknown, and for the primary. */
  lagBytes: number | null
  timeline: number | null
  /** Whether a commit may be confirmed by this replica. */
  isSynchronous: boolean
}

/** The state of a cluster. */
export interface ClusterState {
  members: readonly ClusterMember[]
  /** Name of the primary's service; undefined while there is none. */
  primary: string | undefined
  /** Whether a primary runs, and a replica that confirms its commits. */
  hasQuorum: boolean
  /** Names of members that neither are the primary nor follow it. */
  notReplicating: readonly string[]
  /** Names of the replicas that can take over without losing a commit, the one with the smallest lag first. */
  candidates: readonly string[]
  /** Names of the members for Patroni, by the names of their services; absent where they are the same. */
  identities?: Readonly<Record<string, string>>
  /** The reports of which this state is made, also those of former containers of members. */
  reports: readonly Reported[]
}

/** The state of a cluster of which no member responds. */
export const unknownCluster: ClusterState = {
  members: clusterMembers.map((name) => absentMember(name)),
  primary: undefined,
  hasQuorum: false,
  notReplicating: clusterMembers,
  candidates: [],
  reports: [],
}

const primaryRoles: readonly string[] = ['leader', 'standby_leader']
const synchronousRoles: readonly string[] = ['sync_standby', 'quorum_standby']

/** Reads Patroni's report of `GET /cluster`. @returns undefined for anything else */
export function clusterState(body: string): ClusterState | undefined {
  let report: unknown
  try {
    report = JSON.parse(body)
  } catch {
    return undefined
  }
  return Value.Check(Report, report) ? stateOf(report.members) : undefined
}

/**
 * Returns the state without the reports of members that do not exist any more. Patroni reports one for 20 s after its end as it was,
 * because its key in etcd expires only then.
 * @param exists whether a member of this name for Patroni exists
 */
export function withoutFormer({ reports }: ClusterState, exists: (identity: string) => boolean): ClusterState {
  return stateOf(reports.filter(({ name }) => exists(name)))
}

/** The part of a cluster's data that some members have. */
export interface DataHeld {
  /** Whether each of them is the primary or follows it, and one of them confirms commits. */
  isWhole: boolean
  /** Whether another member is the primary. */
  isLedByOther: boolean
  /** The names of those that can take over without losing a commit. */
  candidates: readonly string[]
}

/** Returns what these members have of the data, whatever former containers of members are reported. */
export function dataHeldBy(identities: readonly string[], { reports }: ClusterState): DataHeld {
  const primary = reports.find(({ role, state }) => primaryRoles.includes(role) && state === 'running')
  const follows = ({ state, timeline }: Reported) => state === 'streaming' && timeline === primary?.timeline
  const own = identities.map((identity) => reports.find(({ name }) => name === identity))
  const candidates = own.filter(
    (one) => one !== undefined && one !== primary && follows(one) && synchronousRoles.includes(one.role),
  )
  return {
    isWhole:
      primary !== undefined &&
      candidates.length > 0 &&
      own.every((one) => one !== undefined && (one === primary || follows(one))),
    isLedByOther: primary !== undefined && !identities.includes(primary.name),
    candidates: candidates.flatMap((one) => one?.name ?? []),
  }
}

function stateOf(reports: readonly Reported[]): ClusterState {
  const reported = clusterMembers.map((name) => reportedAs(name, reports))
  const members = clusterMembers.map((name, at) => memberOf(name, reported[at]))
  const identities = Object.fromEntries(
    clusterMembers.flatMap((name, at) => {
      const identity = reported[at]?.name
      return identity === undefined || identity === name ? [] : [[name, identity]]
    }),
  )
  const primary = members.find(({ role, state }) => role === 'primary' && state === 'running')
  const isFollowing = ({ role, state, timeline }: ClusterMember) =>
    role === 'replica' && state === 'streaming' && timeline === primary?.timeline
  const confirming =
    primary === undefined ? [] : members.filter((member) => isFollowing(member) && member.isSynchronous)
  return {
    members,
    primary: primary?.name,
    hasQuorum: confirming.length > 0,
    notReplicating: members.filter((member) => member !== primary && !isFollowing(member)).map(({ name }) => name),
    candidates: confirming
      .toSorted((one, other) => (one.lagBytes ?? Infinity) - (other.lagBytes ?? Infinity))
      .map(({ name }) => name),
    ...(Object.keys(identities).length === 0 ? {} : { identities }),
    reports,
  }
}

/**
 * Returns the report about a service's member. On several hosts, its name contains the host, and the former container of a service may
 * be reported, too: then the one that serves more counts.
 */
function reportedAs(service: string, reports: readonly Reported[]): Reported | undefined {
  const own = reports.filter(({ name }) => name === service || name.startsWith(`${service}-`))
  const rank = ({ role, state }: Reported) => (primaryRoles.includes(role) ? 0 : state === 'streaming' ? 1 : 2)
  return own.toSorted((one, other) => rank(one) - rank(other))[0]
}

function absentMember(name: string): ClusterMember {
  return { name, role: 'absent', state: '', lagBytes: null, timeline: null, isSynchronous: false }
}

function memberOf(name: string, reported: Reported | undefined): ClusterMember {
  if (reported === undefined) return absentMember(name)
  const { role, state, lag, timeline } = reported
  const isPrimary = primaryRoles.includes(role)
  return {
    name,
    role: isPrimary ? 'primary' : 'replica',
    state,
    lagBytes: !isPrimary && typeof lag === 'number' ? lag : null,
    timeline: timeline ?? null,
    isSynchronous: synchronousRoles.includes(role),
  }
}
