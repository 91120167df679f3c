// A job of the leading control plane that polls periodically, and remembers what it has found as long as it leads.
import type { Clock } from './clock.ts'
import type { Leadership } from './leader.ts'
import type { Log } from './log.ts'
import { repeat } from './repeat.ts'

/** A poll, and what it needs. */
export interface PollOptions {
  clock: Clock
  log: Pick<Log, 'warn'>
  /** The time between two polls in milliseconds. */
  pollMs: number
  /** Creates the poll of one leader. */
  createPoll: () => (epoch: bigint) => Promise<void>
  /** The message of the warning if a poll fails. */
  failure: string
}

/** Creates the job, which runs while this control plane leads. A poll that fails does not prevent the next one. */
export function pollWhileLeading({
  clock,
  log,
  pollMs,
  createPoll,
  failure,
}: PollOptions): (leadership: Leadership) => Promise<void> {
  return ({ epoch, lost }) => {
    const poll = createPoll()
    const work = async () => {
      await poll(epoch)
      return pollMs
    }
    return repeat({ clock, work, onError: (error) => log.warn({ err: error }, failure) }, lost)
  }
}
