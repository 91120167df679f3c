// Records the conditions of the regions while this control plane leads, so that the others can show them.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { pollWhileLeading } from '../platform/poll-while-leading.ts'
import type { RegionCondition } from '../regions/index.ts'
import type { RegionConditions } from './region-conditions.ts'
import type { RegionConditionStore } from './store-region-conditions.ts'

/** The dependencies of the job that records conditions. */
export interface RegionConditionDeps {
  conditions: Pick<RegionConditions, 'listed'>
  recorded: RegionConditionStore
  clock: Clock
  log: Pick<Log, 'warn'>
}

const pollMs = 5_000
/** Time after which a condition that is the same is recorded again, with the time of its observation. */
const sameMs = 60_000

/** Creates the job, which runs while this control plane leads. */
export function recordRegionConditions(deps: RegionConditionDeps): (leadership: Leadership) => Promise<void> {
  return pollWhileLeading({
    ...deps,
    pollMs,
    createPoll: () => createConditionPoll(deps),
    failure: 'The conditions of regions could not be recorded. They are recorded later.',
  })
}

/** Creates the poll of one leader. It records the conditions of the regions in which they have changed. */
export function createConditionPoll({ conditions, recorded }: Pick<RegionConditionDeps, 'conditions' | 'recorded'>) {
  const known = new Map<string, readonly RegionCondition[]>()
  return async (epoch: bigint): Promise<void> => {
    for (const [region, listed] of conditions.listed()) {
      const last = known.get(region) ?? []
      if (last.length === listed.length && listed.every((condition, at) => isSame(last[at], condition))) continue
      await recorded.record(region, listed, epoch)
      known.set(region, listed)
    }
  }
}

/** Whether a condition is as it was recorded, not long ago. */
function isSame(
  recorded: RegionCondition | undefined,
  { status, reason, message, observed_at }: RegionCondition,
): boolean {
  if (recorded === undefined) return false
  const isEqual = recorded.status === status && recorded.reason === reason && recorded.message === message
  return isEqual && Date.parse(observed_at) - Date.parse(recorded.observed_at) < sameMs
}

/**
 * Returns a reader of all regions' conditions, by region: as this control plane has observed them, or as the one that leads has recorded
 * them.
 */
export function createConditionReader({ conditions, recorded }: Pick<RegionConditionDeps, 'conditions' | 'recorded'>) {
  return async (): Promise<ReadonlyMap<string, readonly RegionCondition[]>> =>
    new Map([...(await recorded.all()), ...conditions.listed()])
}
