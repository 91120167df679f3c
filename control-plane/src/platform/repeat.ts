// Periodic work of a leading control plane.
import type { Clock } from './clock.ts'
import { LeadershipLost } from './leadership-lost.ts'

/** Periodic work, with a handler of its errors. */
export interface PeriodicWork {
  clock: Clock
  /** Does the work once. @returns delay until the next run in milliseconds */
  work: (signal: AbortSignal) => Promise<number>
  /** Handles the error of a run. The next run follows after five seconds. */
  onError: (error: unknown) => void
}

const retryMilliseconds = 5_000

/** Repeats the work until the signal aborts. An error of one run is reported and does not prevent the next run. */
export async function repeat({ clock, work, onError }: PeriodicWork, signal: AbortSignal): Promise<void> {
  const stopped = () => signal.aborted
  while (!stopped()) {
    const milliseconds = await work(signal).catch((error: unknown) => {
      // A lost lead is reported by its own signal.
      if (!stopped() && !(error instanceof LeadershipLost)) onError(error)
      return retryMilliseconds
    })
    await clock.sleep(milliseconds, signal).catch(() => undefined)
  }
}
