// Whether services of a cluster should get another host. Pure.
import { crowded, type HostState } from '../placement/index.ts'
import { ofModel } from '../stacks/index.ts'
import { isRunning } from './leaving-services.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, type Region } from './region.ts'

/**
 * Whether services of a cluster are on a host that is emptied or lost, or share one although another host has none of their kind. No
 * drift policy prevents such a move: an operator has requested it, or the tenant would end with the host. A stopped cluster stays.
 * @param states states of the hosts that receive no services
 */
export function shouldMove(
  { isolation, placement: all, desired }: Pick<Snapshot, 'isolation' | 'placement' | 'desired'>,
  states: ReadonlyMap<string, HostState>,
  engine: Region['engine'],
): boolean {
  if (!hasCluster({ isolation }) || !isRunning({ desired })) return false
  const placement = ofModel(all, isolation)
  const receiving = (engine?.hostIds ?? []).filter((id) => !states.has(id) && engine?.isDown(id) !== true)
  return Object.values(placement).some((host) => states.has(host)) || crowded(placement, receiving).length > 0
}
