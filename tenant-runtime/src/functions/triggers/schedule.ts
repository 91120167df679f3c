// Computes the planned times of a schedule. Pure; the current time is an argument.
import { Cron, type CronOptions } from 'croner'
import { RuntimeError } from '../../errors.ts'

export interface Schedule {
  /** A cron expression of five fields, or six with seconds first. */
  cron: string
  /** The IANA name of the time zone; by default UTC. */
  timezone?: string
  /** Whether the latest planned time that was missed is run late or skipped; by default `run`. */
  missed?: 'run' | 'skip'
}

/** Delay after which a planned time counts as missed instead of late. */
export const missedMilliseconds = 60_000
const minIntervalMilliseconds = 60_000

/** Parses a schedule. @throws Error for an invalid expression or time zone */
function open({ cron, timezone = 'UTC' }: Schedule): Cron {
  const options: CronOptions = { paused: true, mode: '5-or-6-parts', timezone }
  return new Cron(cron, options)
}

/** Validates a schedule. @throws RuntimeError INVALID_FUNCTION with the reason */
export function checkSchedule(schedule: Schedule, now: Date): void {
  const invalid = (message: string, cause?: unknown) =>
    new RuntimeError('INVALID_FUNCTION', `Field "trigger": ${message}`, { cause })
  if (schedule.timezone !== undefined && !isTimeZone(schedule.timezone))
    throw invalid(`"timezone" is not a valid time zone. Use a name such as "Europe/Berlin".`)
  // The parser also accepts a date, as a time that comes once.
  if (!/^\s*(@[a-z]+|\S+(\s+\S+){4,5})\s*$/i.test(schedule.cron))
    throw invalid('"cron" is not a valid cron expression. Use five fields, or six with seconds first.')
  let next: Date[]
  try {
    next = open(schedule).nextRuns(3, now)
  } catch (cause) {
    throw invalid('"cron" is not a valid cron expression.', cause)
  }
  const [first] = next
  if (first === undefined) throw invalid('"cron" has no planned time.')
  // Three planned times always show an interval below a minute if there is one.
  const gap = Math.min(...next.slice(1).map((time, n) => time.getTime() - (next[n]?.getTime() ?? 0)))
  if (gap < minIntervalMilliseconds)
    throw invalid(`"cron" has an interval of ${gap / 1_000} s. The shortest allowed interval is 60 s.`)
}

function isTimeZone(name: string): boolean {
  // The platform also accepts offsets, which have no daylight saving time.
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** Returns the next planned time after `after`; undefined if there is none. */
export function nextRun(schedule: Schedule, after: Date): Date | undefined {
  return open(schedule).nextRun(after) ?? undefined
}

/** Returns the latest planned time after `since` up to `now`; earlier ones are not run. */
export function dueTime(schedule: Schedule, since: Date, now: Date): Date | undefined {
  // For the parser, a time has passed only when its second is over.
  const [latest] = open(schedule).previousRuns(1, new Date(Math.floor(now.getTime() / 1_000) * 1_000 + 1_000))
  return latest !== undefined && latest > since ? latest : undefined
}
