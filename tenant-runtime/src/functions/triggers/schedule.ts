// Planned times of a schedule: which comes next, which is due. Pure; the time is an argument.
import { Cron, type CronOptions } from 'croner'
import { RuntimeError } from '../../errors.ts'

export interface Schedule {
  /** Five fields, or six with seconds first. */
  cron: string
  /** An IANA name; UTC without. */
  timezone?: string
  /** What becomes of the latest time that came while nobody was there to see it; `run` without. */
  missed?: 'run' | 'skip'
}

/** A planned time that is seen so much later was missed; before, it is merely late. */
export const missedMilliseconds = 60_000
const shortestMilliseconds = 60_000

/**
 * @throws Error for what is no expression, or no time zone
 */
function open({ cron, timezone = 'UTC' }: Schedule): Cron {
  const options: CronOptions = { paused: true, mode: '5-or-6-parts', timezone }
  return new Cron(cron, options)
}

/** @throws RuntimeError INVALID_FUNCTION that says what is wrong */
export function checkSchedule(schedule: Schedule, now: Date): void {
  const reject = (what: string, cause?: unknown) =>
    new RuntimeError('INVALID_FUNCTION', `field "trigger": ${what}`, { cause })
  if (schedule.timezone !== undefined && !isTimeZone(schedule.timezone))
    throw reject(`"timezone" is no time zone; want a name such as "Europe/Berlin"`)
  // A date is taken by the parser too, as a time that comes once.
  if (!/^\s*(@[a-z]+|\S+(\s+\S+){4,5})\s*$/i.test(schedule.cron))
    throw reject('"cron" is no cron expression: want five fields, or six with seconds first')
  let next: Date[]
  try {
    next = open(schedule).nextRuns(3, now)
  } catch (cause) {
    throw reject('"cron" is no cron expression', cause)
  }
  const [first] = next
  if (first === undefined) throw reject('"cron" names a time that never comes')
  // More than one second of a minute shows within three times, wherever they begin.
  const gap = Math.min(...next.slice(1).map((time, n) => time.getTime() - (next[n]?.getTime() ?? 0)))
  if (gap < shortestMilliseconds) throw reject(`"cron" comes every ${gap / 1_000} s; once a minute is the most`)
}

function isTimeZone(name: string): boolean {
  // Offsets are taken by the platform too, and know no daylight saving time.
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** The next planned time after `after`; undefined when there is none. */
export function nextRun(schedule: Schedule, after: Date): Date | undefined {
  return open(schedule).nextRun(after) ?? undefined
}

/** The latest planned time after `since` that has come by `now`: what came before it stays out. */
export function dueTime(schedule: Schedule, since: Date, now: Date): Date | undefined {
  // To the parser, a time has come once its second is over.
  const [latest] = open(schedule).previousRuns(1, new Date(Math.floor(now.getTime() / 1_000) * 1_000 + 1_000))
  return latest !== undefined && latest > since ? latest : undefined
}
