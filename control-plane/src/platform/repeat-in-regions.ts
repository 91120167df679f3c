// Periodic work of a leading control plane in every region: each has a loop of its own, so that one that does not respond delays no
// other one.
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import { repeat, type PeriodicWork } from './repeat.ts'

interface RegionalWork<Part> {
  clock: Clock
  log: Pick<Log, 'warn'>
  /** Creates the work of one region. */
  createWork: (region: string, part: Part) => PeriodicWork['work']
  /** The message of the warning if the work fails. */
  failure: string
}

/**
 * Repeats the work in all regions until the signal aborts.
 * @param parts what the work needs of each region, by the region's ID
 */
export async function repeatInRegions<Part>(
  parts: ReadonlyMap<string, Part>,
  { clock, log, createWork, failure }: RegionalWork<Part>,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    [...parts].map(([region, part]) =>
      repeat(
        {
          clock,
          work: createWork(region, part),
          onError: (error) => log.warn({ region, err: error }, failure),
        },
        signal,
      ),
    ),
  )
}
