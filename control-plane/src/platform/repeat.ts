// Work that a leading control plane does from time to time.
import type { Clock } from './clock.ts'
import { LeadershipLost } from './leadership-lost.ts'

/** Work that is done from time to time, and who is told when a run of it fails. */
export interface Repeated {
  clock: Clock
  /** Does the work once. @returns after how many milliseconds it is to be done again */
  work: (signal: AbortSignal) => Promise<number>
  /** Told what a run threw; the next run follows after five seconds. */
  onError: (error: unknown) => void
}

const retryMilliseconds = 5_000

/** Until the signal aborts. What one run throws is told, and the next one comes all the same. */
export async function repeat({ clock, work, onError }: Repeated, signal: AbortSignal): Promise<void> {
  const stopped = () => signal.aborted
  while (!stopped()) {
    const milliseconds = await work(signal).catch((error: unknown) => {
      // Who lost the lead has been told, or will be in a moment.
      if (!stopped() && !(error instanceof LeadershipLost)) onError(error)
      return retryMilliseconds
    })
    await clock.sleep(milliseconds, signal).catch(() => undefined)
  }
}
