// Computes up to which entry the event log is final. Entries receive their numbers before their transactions commit, so a
// lower number may become visible after a higher one, and a reader must not skip it. Pure.

export interface Poll {
  /** The last number that was assigned. */
  last: bigint
  /** The ID of a transaction that began after that number was read. */
  later: bigint
  /** The lowest ID of running transactions in a later snapshot: every transaction with a lower ID has ended. */
  ended: bigint
}

export interface Watermark {
  /** No further entry up to this number can become visible. */
  final: bigint
  /** The number that is final when every transaction before `later` has ended. */
  pending: { last: bigint; later: bigint } | undefined
}

export const unknownWatermark: Watermark = { final: -1n, pending: undefined }

/** Returns the number up to which the log was polled. */
export function reached({ final, pending }: Watermark): bigint {
  return pending?.last ?? final
}

/**
 * Advances the watermark. A transaction has its ID before it takes numbers, because its change precedes its event. So a
 * transaction that has taken a number up to `last` has an ID before `later`.
 */
export function advance(mark: Watermark, { last, later, ended }: Poll): Watermark {
  if (mark.pending !== undefined && ended < mark.pending.later) return mark
  const final = reached(mark)
  if (last <= final) return { final, pending: undefined }
  return ended >= later ? { final: last, pending: undefined } : { final, pending: { last, later } }
}
