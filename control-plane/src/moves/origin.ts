// Where a move brings a home from.
import type { MoveLocation } from './locations.ts'
import type { Stream } from './move.ts'

/** The location of a home before a move. Every call may be repeated at any point. */
export interface Origin {
  location: MoveLocation
  /** Whether a deletion of the tenant has removed it. Then no move has switched that is not recorded. */
  isRemoved(signal: AbortSignal): Promise<boolean>
  /** Removes the slot of the stream from every server that may have it, where it can be reached. */
  removeSlot(stream: Stream, signal: AbortSignal): Promise<void>
  /** Removes what the move has left, after its switch. */
  removeRemains(signal: AbortSignal): Promise<void>
}
