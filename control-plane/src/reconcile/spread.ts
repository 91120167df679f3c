// The condition `Spread`: on how many hosts a tenant's services are, and whether these respond.
import { clusterMembers, ofModel, type Placement } from '../stacks/index.ts'
import type { ConditionState } from './conditions.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

/** The part of a tenant on which the condition depends. */
type Placed = Pick<Snapshot, 'isolation' | 'placement'>

/** Returns the hosts of a tenant's services that do not respond. Services that a move adds or removes do not count. */
export function silentHosts({ isolation, placement }: Placed, region: Pick<Region, 'engine'>): string[] {
  return silentAmong(ofModel(placement, isolation), region)
}

/** Returns the hosts of a placement that do not respond. */
function silentAmong(placement: Placement, { engine }: Pick<Region, 'engine'>): string[] {
  return [...new Set(Object.values(placement))].sort().filter((host) => engine?.isDown(host) === true)
}

/** Whether the recorded condition `Spread` is no longer true, for example because a host is silent or has returned. */
export function isSpreadOutdated(
  snapshot: Placed & Pick<Snapshot, 'conditions'>,
  region: Pick<Region, 'engine'>,
): boolean {
  const recorded = snapshot.conditions.find(({ type }) => type === 'Spread')
  return recorded !== undefined && recorded.message !== spreadOf(snapshot, region).message
}

/** Returns the condition `Spread`, of a tenant with services of its own in a region with several hosts. */
export function spreadOf(snapshot: Placed, region: Pick<Region, 'engine'>): ConditionState {
  const { isolation } = snapshot
  const placement = ofModel(snapshot.placement, isolation)
  const hosts = new Set(Object.values(placement)).size
  const silent = silentAmong(placement, region)
  const members = new Set(clusterMembers.flatMap((member) => placement[member] ?? [])).size
  const message = `The services of the tenant are on ${hosts} ${hosts === 1 ? 'host' : 'hosts'}.`
  const fails = (reason: string, why: string): ConditionState => ({
    status: 'False',
    reason,
    message: `${message}${why}`,
  })
  if (silent.length > 0) return fails('HostUnreachable', ` These do not respond: ${silent.join(', ')}.`)
  if (hasCluster({ isolation }) && members < clusterMembers.length)
    return fails('FewHosts', ' Two members of the cluster are on one host.')
  return { status: 'True', reason: 'Observed', message }
}
