// Reports the step of some work that takes long, so that the log shows for what it waits.
import type { Clock } from '../platform/clock.ts'

/** Names the step that begins. */
export type AtStep = (step: string) => void

const intervalMilliseconds = 60_000

/**
 * Does work, and reports its step each time it has been in the same one for a minute.
 * @param report receives the step, and the seconds since it began
 */
export async function reportSlowSteps<T>(
  { clock, report }: { clock: Pick<Clock, 'now' | 'every'>; report: (step: string, seconds: number) => void },
  work: (at: AtStep) => Promise<T>,
): Promise<T> {
  let current: { step: string; since: number; reported: number } | undefined
  const now = () => clock.now().getTime()
  const at: AtStep = (step) => {
    current = { step, since: now(), reported: now() }
  }
  const stop = clock.every(intervalMilliseconds / 4, () => {
    if (current === undefined || now() - current.reported < intervalMilliseconds) return
    current.reported = now()
    report(current.step, Math.round((now() - current.since) / 1000))
  })
  try {
    return await work(at)
  } finally {
    stop()
  }
}
