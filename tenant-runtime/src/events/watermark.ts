// Computes up to which entry the event log is final. Entries receive their numbers before their transactions commit, so a
// lower number may become visible after a higher one, and a reader must not skip it. Pure.

export interface Poll {
  /** The last number that was assigned. */
  last: bigint
  /** The IDs of the home's transactions that were running after that number was read. */
  running: readonly string[]
}

export interface Watermark {
  /** No further entry up to this number can become visible. */
  final: bigint
  /** The number that is final when these transactions have ended. */
  pending: { last: bigint; writers: readonly string[] } | undefined
}

export const unknownWatermark: Watermark = { final: -1n, pending: undefined }

/** Returns the number up to which the log was polled. */
export function reached({ final, pending }: Watermark): bigint {
  return pending?.last ?? final
}

/**
 * Advances the watermark. A transaction has its ID before it takes numbers, because its change precedes its event. So a
 * transaction that has taken a number up to `last` either has ended or is one of `running`. Only the home's own
 * transactions write to its log, so those of other tenants delay nothing.
 */
export function advance(mark: Watermark, { last, running }: Poll): Watermark {
  if (mark.pending?.writers.some((id) => running.includes(id)) === true) return mark
  const final = reached(mark)
  if (last <= final) return { final, pending: undefined }
  return running.length === 0 ? { final: last, pending: undefined } : { final, pending: { last, writers: running } }
}
