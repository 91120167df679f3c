// Time as the reconciler knows it; a simulation puts its own in this place.
import { setTimeout as wait } from 'node:timers/promises'

/** Time and waiting; all times are milliseconds. */
export interface Clock {
  /** The current time. */
  now(): Date
  /** Rejects with the signal's reason when it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Aborts when the time is over. */
  timeout(milliseconds: number): AbortSignal
  /** Calls `work` once. @returns a function that prevents it */
  later(milliseconds: number, work: () => void): () => void
  /** Calls `work` again and again. @returns a function that ends it */
  every(milliseconds: number, work: () => void): () => void
}

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => new Date(),
  sleep: (milliseconds, signal) => wait(milliseconds, undefined, signal === undefined ? {} : { signal }),
  timeout: (milliseconds) => AbortSignal.timeout(milliseconds),
  later(milliseconds, work) {
    const timer = setTimeout(work, milliseconds)
    return () => clearTimeout(timer)
  },
  every(milliseconds, work) {
    const timer = setInterval(work, milliseconds)
    return () => clearInterval(timer)
  },
}
