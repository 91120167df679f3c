// Up to which entry the event log is final. Entries get their numbers before their transactions commit, so that a lower
// one may show up after a higher one; a reader must not pass it by. Pure.

export interface Poll {
  /** The last number that was given out. */
  last: bigint
  /** The id of a transaction that began after that number was read. */
  later: bigint
  /** From a snapshot made after that: every transaction with a lower id has ended. */
  ended: bigint
}

export interface Watermark {
  /** No entry up to this number can appear any more. */
  final: bigint
  /** What is final as soon as every transaction before `later` has ended. */
  pending: { last: bigint; later: bigint } | undefined
}

export const unknownWatermark: Watermark = { final: -1n, pending: undefined }

/** Up to where the log was looked at. */
export function reached({ final, pending }: Watermark): bigint {
  return pending?.last ?? final
}

/**
 * A transaction has its id before it takes numbers, because its change comes before its event. So whoever has taken a
 * number up to `last` has an id before `later`.
 */
export function advance(mark: Watermark, { last, later, ended }: Poll): Watermark {
  if (mark.pending !== undefined && ended < mark.pending.later) return mark
  const final = reached(mark)
  if (last <= final) return { final, pending: undefined }
  return ended >= later ? { final: last, pending: undefined } : { final, pending: { last, later } }
}
