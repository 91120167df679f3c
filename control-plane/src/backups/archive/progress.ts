// Derives from observations of a running Postgres until when its commits are in the archive. Pure.
import { endOfSegment, timelineOf } from './wal.ts'

/** The state that Postgres reported at one moment. */
export interface Observation {
  /** Every commit until then is in the WAL before `position`. */
  at: Date
  position: bigint
  /** The timeline of the position. A promoted replica continues on a new one. */
  timeline: number
  /** The next transaction ID while no transaction with an ID was in progress; undefined otherwise. */
  idleAt: string | undefined
}

/** The observations of an archive that its segments do not cover yet. */
export interface Progress {
  /** All of one timeline: what a primary had reported is not known to be part of its successor's log. */
  pending: readonly Observation[]
  /** The timeline of the last observation; undefined before the first one. */
  timeline: number | undefined
  /** The transaction ID until which everything is stored, if Postgres was idle at that moment. */
  storedUntil: string | undefined
}

/** The state before the first observation. */
export const noProgress: Progress = { pending: [], timeline: undefined, storedUntil: undefined }

/** Maximum number of pending observations. Without the oldest ones, the latest moment is only known later. */
const maxPending = 128

/**
 * Adds an observation, which was made before the segments were listed.
 * @param last the last stored segment; undefined for none
 * @returns the new state, and the latest moment that the archive covers; undefined if none is known to be covered
 */
export function advance(
  progress: Progress,
  observation: Observation,
  last: string | undefined,
): { progress: Progress; latest: Date | undefined } {
  const { timeline } = observation
  const { pending, storedUntil } = progress.timeline === timeline ? progress : noProgress
  const all = [...pending, observation]
  const end = last === undefined || timelineOf(last) !== timeline ? undefined : endOfSegment(last)
  const isStored = ({ position }: Observation) => end !== undefined && position <= end
  const stored = all.findLast(isStored)
  const until = stored === undefined ? storedUntil : (stored.idleAt ?? undefined)
  // Without a transaction since then, nothing has been committed, and Postgres may write no further segment.
  const isUnchanged = until !== undefined && observation.idleAt === until
  return {
    progress: { pending: all.filter((one) => !isStored(one)).slice(-maxPending), timeline, storedUntil: until },
    latest: isUnchanged ? observation.at : stored?.at,
  }
}
