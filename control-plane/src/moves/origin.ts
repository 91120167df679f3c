// Where a move brings a home from.
import type { MoveLocation } from './locations.ts'

/** The location of a home before a move. Every call may be repeated at any point. */
export interface Origin {
  location: MoveLocation
  /** Whether a deletion of the tenant has removed it. Then no move has switched that is not recorded. */
  isRemoved(signal: AbortSignal): Promise<boolean>
  /** Removes what the move has left, after its switch. */
  removeRemains(signal: AbortSignal): Promise<void>
}
