// Where a move brings a home.
import type { FileCopy } from './copy-files.ts'
import type { MoveLocation } from './locations.ts'

/** The location of a home after a move. Every call may be repeated at any point. */
export interface Destination {
  location: MoveLocation
  /** The reason for which no move to it can be reverted; undefined if it can. */
  notRevertible: string | undefined
  /** Makes a database with the roles of the home, without the home. @throws MoveError, EngineError */
  prepare(signal: AbortSignal): Promise<void>
  /** Opens the copy of the home's files; undefined if they stay where they are. */
  copyFiles(signal: AbortSignal): Promise<FileCopy | undefined>
  /**
   * Removes the copy, which no tenant uses.
   * @param removeFollowing removes the streams and the logins of the move
   */
  removeCopy(removeFollowing: () => Promise<void>, signal: AbortSignal): Promise<void>
  /** Removes what the move has left at the source. @param isServed whether the tenant exists, and is served from here */
  removeSource(isServed: boolean, signal: AbortSignal): Promise<void>
}
