// Puts together what observes, records, reports and shows the conditions of regions.
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Log } from '../platform/log.ts'
import { createConditionReader, recordRegionConditions } from './jobs-region-conditions.ts'
import { reportRegions } from './jobs-region-events.ts'
import { createRegionConditions } from './region-conditions.ts'
import { createRegionConditionStore } from './store-region-conditions.ts'
import { createRegionEvents } from './store-region-events.ts'

interface RegionConditionOptions {
  database: Database
  clock: Clock
  log: Pick<Log, 'warn'>
  now: () => Date
}

/** Opens the conditions of regions: those that this control plane observes, the jobs of the leading one, and the reader for the API. */
export function openRegionConditions({ database, clock, log, now }: RegionConditionOptions) {
  const conditions = createRegionConditions(clock)
  const recorded = createRegionConditionStore(database)
  const events = createRegionEvents(database, now)
  return {
    conditions,
    /** The jobs of the leading control plane. */
    jobs: [
      reportRegions({ conditions, events, clock, log }),
      recordRegionConditions({ conditions, recorded, clock, log }),
    ],
    /** Returns the conditions of all regions, by region. */
    read: createConditionReader({ conditions, recorded }),
  }
}
