// Writes the events of regions. The last event of a region is the state that operators know.
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import { emitOperatorEvent } from '../webhooks/index.ts'

/** The state of a region to report. */
interface RegionState {
  region: string
  isReady: boolean
  /** The code and the public message of its condition. */
  reason: string
  message: string
}

/** The events of regions. */
export type RegionEvents = ReturnType<typeof createRegionEvents>

/** Creates the store of regions' events, on the control database. */
export function createRegionEvents(database: Database, now: () => Date) {
  return {
    /**
     * Writes an event, unless the last one of the region states the same. A region without an event counts as ready.
     * @throws LeadershipLost
     */
    report: ({ region, isReady, reason, message }: RegionState, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [], async (transaction) => {
        const [last] = await transaction.$queryRaw<{ type: string }[]>`
          select type from operator_events
          where type in ('region.ready', 'region.not_ready') and data ->> 'region' = ${region}
          order by at desc limit 1`
        if ((last?.type !== 'region.not_ready') === isReady) return
        const type = isReady ? 'region.ready' : 'region.not_ready'
        await emitOperatorEvent(transaction, { type, data: { region, reason, message } }, now())
      }),
  }
}
