// Derives from observations of a running Postgres until when its commits are in the archive. Pure.

/** The state that Postgres reported at one moment. */
export interface Observation {
  /** Every commit until then is in the WAL before `position`. */
  at: Date
  position: bigint
  /** The next transaction ID while no transaction with an ID was in progress; undefined otherwise. */
  idleAt: string | undefined
}

/** The observations of an archive that its segments do not cover yet. */
export interface Progress {
  pending: readonly Observation[]
  /** The transaction ID until which everything is stored, if Postgres was idle at that moment. */
  storedUntil: string | undefined
}

/** The state before the first observation. */
export const noProgress: Progress = { pending: [], storedUntil: undefined }

/** Maximum number of pending observations. Without the oldest ones, the latest moment is only known later. */
const maxPending = 128

/**
 * Adds an observation, which was made before the segments were listed.
 * @param end the end of the last stored segment; undefined for none
 * @returns the new state, and the latest moment that the archive covers; undefined if none is known to be covered
 */
export function advance(
  { pending, storedUntil }: Progress,
  observation: Observation,
  end: bigint | undefined,
): { progress: Progress; latest: Date | undefined } {
  const all = [...pending, observation]
  const isStored = ({ position }: Observation) => end !== undefined && position <= end
  const stored = all.findLast(isStored)
  const until = stored === undefined ? storedUntil : (stored.idleAt ?? undefined)
  // Without a transaction since then, nothing has been committed, and Postgres may write no further segment.
  const isUnchanged = until !== undefined && observation.idleAt === until
  return {
    progress: { pending: all.filter((one) => !isStored(one)).slice(-maxPending), storedUntil: until },
    latest: isUnchanged ? observation.at : stored?.at,
  }
}
