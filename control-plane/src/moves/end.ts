// An end of a move, where a home is or will be.
import type { MoveLocation } from './locations.ts'
import type { Stream } from './move.ts'

export interface End {
  location: MoveLocation
  /** Removes the slot of a stream that begins here from every server that may have it, where it can be reached. */
  removeSlot(stream: Stream, signal: AbortSignal): Promise<void>
}
