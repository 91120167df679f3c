// Dumps the control database to each target while this control plane leads, and removes old dumps. Each target has dumps of
// its own, so that a target that is not available delays only its own dumps.
import type { Clock } from '../../platform/clock.ts'
import type { Leadership } from '../../platform/leader.ts'
import type { Log } from '../../platform/log.ts'
import { repeat } from '../../platform/repeat.ts'
import type { PostgresUrl } from '../../platform/superuser-url.ts'
import type { BackupTarget } from '../backup-target.ts'
import { openDump } from './dump-files.ts'
import { dumpTime, newDumpId } from './dump-id.ts'
import { takeDump } from './take-dump.ts'

/** The dependencies of the job. */
export interface DumpJobDeps {
  /** The superuser's URL of the control database. */
  url: PostgresUrl
  installation: string
  targets: readonly BackupTarget[]
  /** The key of the dumps. */
  key: Uint8Array
  /** Time between two dumps; 0 for none. */
  intervalMilliseconds: number
  /** The number of dumps that stay in each target. */
  maxDumps: number
  clock: Clock
  /** Returns a uniform random number in [0, 1). */
  random: () => number
  log: Pick<Log, 'info' | 'warn'>
  /** Receives the time of a target's newest dump, or 1970 if it has none. */
  measure: (target: string, newest: Date) => void
}

const pollMilliseconds = 10_000
const retryMilliseconds = 60_000
const dumpMilliseconds = 3_600_000

/** Creates the job, which runs while this control plane leads. */
export function dumpControlDatabase(deps: DumpJobDeps): (leadership: Leadership) => Promise<void> {
  const { targets, intervalMilliseconds, clock, log } = deps
  return async ({ lost }) => {
    if (intervalMilliseconds === 0) return
    const loop = (target: BackupTarget) => {
      let dueAt = -Infinity
      const work = async () => {
        const now = clock.now()
        if (now.getTime() >= dueAt) {
          // After a failure, the target is not written again at once.
          dueAt = now.getTime() + retryMilliseconds
          const signal = AbortSignal.any([lost, clock.timeout(dumpMilliseconds)])
          dueAt = (await dumpInto(target, deps, signal)) + intervalMilliseconds
        }
        return pollMilliseconds
      }
      const onError = (error: unknown) =>
        log.warn({ target: target.name, err: error }, 'The control database could not be dumped. The dump is retried.')
      return repeat({ clock, work, onError }, lost)
    }
    await Promise.all(targets.map(loop))
  }
}

/** Takes a dump, if one is due, and removes old ones. @returns the time of the newest dump, in milliseconds */
async function dumpInto(target: BackupTarget, deps: DumpJobDeps, signal: AbortSignal): Promise<number> {
  const { url, installation, key, intervalMilliseconds, maxDumps, clock, random, log, measure } = deps
  const entries = await target.list()
  // Only the leader writes dumps, so these are left by an interrupted one.
  for (const { id, content } of entries) {
    if (content === 'making') await target.discard(id)
    else if (content === 'removing') await target.remove(id)
  }
  const dumps = entries.flatMap(({ id, content }) => (content === 'whole' ? [id] : [])).sort()
  const last = dumps.at(-1)
  const takenAt = clock.now()
  // Without any dump, the time is 1970, so that the metric exists and alerts can use it.
  if (last === undefined) measure(target.name, new Date(0))
  else {
    const newest = dumpTime(last)
    measure(target.name, newest)
    const age = takenAt.getTime() - newest.getTime()
    if (age >= 0 && age < intervalMilliseconds) return newest.getTime()
  }
  // IDs order the dumps, so the time in one is after those of earlier dumps, even if a clock was set back.
  const idTime = new Date(Math.max(takenAt.getTime(), last === undefined ? 0 : dumpTime(last).getTime() + 1))
  const dumpId = newDumpId(idTime, String(random()))
  const files = openDump(target, dumpId, key, signal)
  try {
    await takeDump({ url, dumpId, installation, takenAt, files }, signal)
  } catch (cause) {
    await target.discard(dumpId).catch(() => undefined)
    throw cause
  }
  measure(target.name, takenAt)
  log.info({ target: target.name, dump: dumpId }, 'The control database was dumped.')
  for (const old of dumps.slice(0, Math.max(0, dumps.length + 1 - maxDumps))) await target.remove(old)
  return takenAt.getTime()
}
