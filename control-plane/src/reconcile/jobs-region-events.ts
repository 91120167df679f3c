// Reports regions that are not ready for a while, and that are ready again, to operators' webhooks, while this control
// plane leads.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { pollWhileLeading } from '../platform/poll-while-leading.ts'
import type { RegionConditions } from './region-conditions.ts'
import type { RegionEvents } from './store-region-events.ts'

/** The dependencies of the job that reports regions. */
export interface RegionEventDeps {
  conditions: Pick<RegionConditions, 'all'>
  events: RegionEvents
  clock: Clock
  log: Pick<Log, 'warn'>
}

const pollMs = 20_000
/** The number of polls in a row after which a region counts as not ready, so that the restart of a service is not reported. */
const minPolls = 3

/** Creates the job, which runs while this control plane leads. */
export function reportRegions(deps: RegionEventDeps): (leadership: Leadership) => Promise<void> {
  return pollWhileLeading({
    ...deps,
    pollMs,
    createPoll: () => createRegionPoll(deps),
    failure: 'The conditions of regions could not be reported to webhooks. They are reported later.',
  })
}

/** Creates the poll of one leader. It writes an event only where the last one of the region states the opposite. */
export function createRegionPoll({ conditions, events }: Pick<RegionEventDeps, 'conditions' | 'events'>) {
  const notReady = new Map<string, number>()
  const reported = new Map<string, boolean>()
  return async (epoch: bigint): Promise<void> => {
    for (const [region, { status, reason, message }] of conditions.all()) {
      const polls = status === 'True' ? 0 : (notReady.get(region) ?? 0) + 1
      notReady.set(region, polls)
      const isReady = polls === 0
      if ((!isReady && polls < minPolls) || reported.get(region) === isReady) continue
      await events.report({ region, isReady, reason, message }, epoch)
      reported.set(region, isReady)
    }
  }
}
