// Starts a process again when it was killed.

/** The end of a process. `code` is null if a signal ended it, or if it could not be started. */
export interface ProcessEnd {
  code: number | null
  signal: NodeJS.Signals | null
}

interface RespawnOptions {
  /** Runs the process once, until it ends. */
  run: () => Promise<ProcessEnd>
  /** Waits; returns early when the process is asked to stop. */
  pause: (milliseconds: number) => Promise<void>
  /** Milliseconds since a fixed point. */
  elapsed: () => number
  /** Called before the process is started again. */
  report: (signal: NodeJS.Signals | null, delay: number) => void
  /** Returns whether the process has been asked to stop. */
  isStopping: () => boolean
}

const firstDelayMilliseconds = 100
const maxDelayMilliseconds = 10_000
/** Run time after which the delay is short again. */
const steadyMilliseconds = 30_000

/**
 * Runs a process until it ends by itself, and again with a growing delay whenever a signal ended it before it was asked to
 * stop.
 * @returns its exit code; null if it was asked to stop and did not end by itself, so that its own children may remain
 */
export async function respawn({ run, pause, elapsed, report, isStopping }: RespawnOptions): Promise<number | null> {
  for (let delay = firstDelayMilliseconds; ; delay = Math.min(delay * 2, maxDelayMilliseconds)) {
    const begin = elapsed()
    const { code, signal } = await run()
    if (code !== null || isStopping()) return code
    if (elapsed() - begin > steadyMilliseconds) delay = firstDelayMilliseconds
    report(signal, delay)
    await pause(delay)
    if (isStopping()) return null
  }
}
