// Removes old entries of the audit log in batches, while this control plane leads.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import type { OldEntries } from './store-old-entries.ts'

interface OldEntriesDeps {
  store: OldEntries
  /** Days after which an entry is removed. */
  days: number
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 86_400_000
/** Milliseconds between two batches. */
const pauseMilliseconds = 1_000
const batch = 1_000

/** Creates the job, which runs while this control plane leads. */
export function removeOldEntries({ store, days, clock, log }: OldEntriesDeps) {
  return ({ epoch, lost }: Leadership): Promise<void> =>
    repeat(
      {
        clock,
        work: async () => ((await store.remove(epoch, days, batch)) < batch ? intervalMilliseconds : pauseMilliseconds),
        onError: (error) =>
          log.warn({ err: error }, 'Old entries of the audit log could not be removed. The removal is retried.'),
      },
      lost,
    )
}
