// Which services of a cluster leave their hosts now, so that members with the data remain, whatever interrupts the move. Pure.
import { dataHeldBy, unknownCluster, type ClusterState } from '../clusters/index.ts'
import { crowded, type HostState } from '../placement/index.ts'
import { clusterMembers, isClusterMember, memberIdentity, type Placement } from '../stacks/index.ts'
import type { Snapshot } from './reconcile-store.ts'

/** The state of a cluster and of the hosts, on which the choice depends. */
export interface LeavingInput {
  placement: Placement
  /** States of the hosts that receive no services. */
  states: ReadonlyMap<string, HostState>
  /** IDs of the hosts that the region has. */
  hosts: readonly string[]
  /** IDs of the hosts to which services may go. */
  receiving: readonly string[]
  /** Whether the services should run. */
  isRunning: boolean
  /** Whether the cluster may hold data. */
  hasData: boolean
  /** Whether the cluster was lost with its region, so that it begins again. */
  mayBeginAgain: boolean
  /** Its state; undefined if no member responds. */
  cluster: ClusterState | undefined
}

/** Whether the services of a tenant should run. */
export function isRunning({ desired }: Pick<Snapshot, 'desired'>): boolean {
  return desired !== 'suspended' && desired !== 'paused'
}

/**
 * Returns the services that leave their hosts. All leave a lost host. A host that is emptied or shared, one member leaves at a time, while
 * all others follow the primary. Services of a stopped cluster stay, also on a lost host, which may return: a member copies its data from a
 * running primary. Those of a cluster that was lost with its region leave a lost host, which the cluster would await.
 */
export function leavingServices(input: LeavingInput): string[] {
  const { placement, states, hosts, receiving, hasData } = input
  const on = (isLeft: (host: string) => boolean) =>
    Object.keys(placement).filter((service) => isLeft(placement[service] ?? ''))
  const isLost = (host: string) => !hosts.includes(host) || states.get(host) === 'lost'
  if (!input.isRunning) return on(input.mayBeginAgain ? isLost : (host) => !hosts.includes(host))
  const lost = on(isLost)
  const emptied = on((host) => hosts.includes(host) && states.get(host) === 'draining')
  const fixed = Object.fromEntries(
    Object.entries(placement).filter(([service]) => !lost.includes(service) && !emptied.includes(service)),
  )
  const open = [...emptied, ...crowded(fixed, receiving)]
  const members = open.filter(isClusterMember)
  const first = members.find((member) => isCopied(member, input))
  const leaving = hasData ? (first === undefined ? [] : [first]) : members
  return [...lost, ...open.filter((service) => !isClusterMember(service)), ...leaving]
}

/** Returns the members of a cluster that have another host in a placement. */
export function movedMembers(before: Placement, after: Placement): string[] {
  return clusterMembers.filter((member) => before[member] !== undefined && before[member] !== after[member])
}

/**
 * Whether a placement moves no member with data except those that leave their hosts now (`leavingServices`), or a single other one of which
 * all others have the data.
 */
export function keepsData(chosen: Placement, input: LeavingInput): boolean {
  if (!input.hasData) return true
  const leaving = leavingServices(input)
  const moved = movedMembers(input.placement, chosen)
  const others = moved.filter((member) => !leaving.includes(member))
  if (others.length === 0) return true
  return input.isRunning && moved.length === 1 && others.every((member) => isCopied(member, input))
}

/** Whether all other members have the data of the cluster on their present hosts. */
function isCopied(member: string, { placement, cluster = unknownCluster }: LeavingInput): boolean {
  const others = clusterMembers.filter((other) => other !== member)
  return dataHeldBy(
    others.map((other) => memberIdentity(other, placement[other])),
    cluster,
  ).isWhole
}
