// Deletes old operations in batches, while this control plane leads.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import type { OldOperations } from './store-old-operations.ts'

interface BatchDeps {
  store: OldOperations
  /** Days after which an operation is deleted. */
  days: number
  clock: Pick<Clock, 'now'>
}

interface OldOperationsDeps extends BatchDeps {
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 3_600_000
/** Milliseconds between two batches. */
const pauseMilliseconds = 1_000
const batch = 1_000

/** Creates the job, which runs while this control plane leads. */
export function deleteOldOperations(deps: OldOperationsDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  return ({ lost }) =>
    repeat(
      {
        clock,
        work: () => deleteBatch(deps),
        onError: (error) => log.warn({ err: error }, 'Old operations could not be deleted. The deletion is retried.'),
      },
      lost,
    )
}

/** Deletes one batch. @returns the milliseconds until the next one */
export async function deleteBatch({ store, days, clock }: BatchDeps): Promise<number> {
  const before = new Date(clock.now().getTime() - days * 86_400_000)
  return (await store.remove(before, batch)) < batch ? intervalMilliseconds : pauseMilliseconds
}
