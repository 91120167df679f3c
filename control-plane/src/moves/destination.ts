// Where a move brings a home.
import type { FileTransfer } from './copy-files.ts'
import type { End } from './end.ts'

/** The location of a home after a move. Every call may be repeated at any point. */
export interface Destination extends End {
  /** Makes a database with the roles of the home, without the home. @throws MoveError, EngineError */
  prepare(signal: AbortSignal): Promise<void>
  /** Lets the tenant's logins into a home that has stayed for a revert, with their present passwords. */
  openLogins(signal: AbortSignal): Promise<void>
  /** The way of the files to it; undefined if they stay where they are. */
  files: FileTransfer | undefined
  /** Lets no runtime that serves the tenant remove a file while `work` runs. */
  whileHeld<T>(signal: AbortSignal, work: (held: AbortSignal) => Promise<T>): Promise<T>
  /**
   * Removes the copy, which no tenant uses.
   * @param removeFollowing removes the streams and the logins of the move
   */
  removeCopy(removeFollowing: () => Promise<void>, signal: AbortSignal): Promise<void>
  /** Removes the home of a tenant that was deleted meanwhile. */
  removeUnserved(signal: AbortSignal): Promise<void>
}
