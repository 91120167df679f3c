// Removes scratch databases and logins from a region's shared Postgres that jobs could not remove themselves, because the
// server was away or the control plane was killed.
import type { Clock } from '../platform/clock.ts'
import { superuserOf } from '../regions/index.ts'
import type { JobDeps } from './job-deps.ts'
import { removeScratchDatabases } from './shared/verify-shared.ts'

const removeMilliseconds = 30_000
const retryMilliseconds = 60_000

type TidyDeps = Pick<JobDeps, 'regions' | 'log'> & { clock: Pick<Clock, 'now' | 'timeout'> }

/** Creates the removal of what interrupted jobs have left. At first, every region is to be tidied. */
export function createTidy({ regions, clock, log }: TidyDeps) {
  /** The regions to tidy, and the time from which each is. */
  const due = new Map([...regions.keys()].map((region) => [region, clock.now().getTime()]))
  const running = new Map<string, Promise<void>>()

  const tidy = async (region: string, signal: AbortSignal): Promise<void> => {
    try {
      const config = regions.get(region)?.config
      const bounded = AbortSignal.any([signal, clock.timeout(removeMilliseconds)])
      if (config !== undefined) await removeScratchDatabases(superuserOf(config), bounded)
    } catch (error) {
      due.set(region, clock.now().getTime() + retryMilliseconds)
      if (!signal.aborted)
        log.warn({ region, err: error }, 'Scratch databases could not be removed. The removal is repeated.')
    }
  }

  return {
    /** Notes that a job has failed in a region. */
    jobFailed: (region: string): void => void due.set(region, clock.now().getTime()),

    /**
     * Begins to tidy the regions that need it, except busy ones.
     * @returns the regions in which no job may begin now
     */
    run(busy: ReadonlySet<string>, signal: AbortSignal): ReadonlySet<string> {
      const now = clock.now().getTime()
      for (const [region, from] of due) {
        if (now < from || busy.has(region) || running.has(region)) continue
        due.delete(region)
        running.set(
          region,
          tidy(region, signal).finally(() => running.delete(region)),
        )
      }
      return new Set(running.keys())
    },

    /** Resolves when nothing is being removed. */
    idle: async (): Promise<void> => void (await Promise.all(running.values())),
  }
}
