// The reconciler's clock, which a simulation replaces.
import { setTimeout as wait } from 'node:timers/promises'

/** A clock. All durations are milliseconds. */
export interface Clock {
  /** The current time. */
  now(): Date
  /** Waits. It rejects with the signal's reason when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Returns a signal that aborts after the duration. */
  timeout(milliseconds: number): AbortSignal
  /** Calls `work` once, later. @returns a function that cancels it */
  later(milliseconds: number, work: () => void): () => void
  /** Calls `work` periodically. @returns a function that stops it */
  every(milliseconds: number, work: () => void): () => void
}

/** The clock of the machine. */
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
