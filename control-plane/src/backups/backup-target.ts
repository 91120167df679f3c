// Where backups are kept: a small store of parts, of which those of a backup appear all at once or not at all.

/** A directory of one backup in the target. */
export interface TargetEntry {
  id: string
  /** `whole`: committed. `making`: the parts of a take that has not committed. `removing`: its removal was decided and has begun. */
  content: 'whole' | 'making' | 'removing'
  isQuarantined: boolean
}

export interface BackupTarget {
  /** A part of a backup that is being made; on disk when this returns. @returns bytes written @throws BackupError DISK_FULL */
  write(backupId: string, part: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>
  /** The backup is whole from here on, and survives a power cut. */
  commit(backupId: string): Promise<void>
  /** A part of a whole backup, quarantined or not. @throws BackupError INCOMPLETE when there is no such part */
  read(backupId: string, part: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Bytes of these parts of a whole backup; undefined when one of them is not there, or the backup is in the quarantine. */
  size(backupId: string, parts: readonly string[]): Promise<number | undefined>
  /** Removes what a take has not committed; a whole backup stays. */
  discard(backupId: string): Promise<void>
  /**
   * Removes all there is of a backup, also in the quarantine. Call it only after the decision is recorded: what an interrupted
   * call leaves is an entry `removing`, and may be removed without asking anybody. A missing backup is no error.
   */
  remove(backupId: string): Promise<void>
  /** Moves a backup, whole or not, out of the way; on disk when this returns. What is quarantined is never overwritten. */
  quarantine(backupId: string): Promise<void>
  /** Moves a whole backup from the quarantine back. @returns false when there is none, or the target has another one with its ID */
  release(backupId: string): Promise<boolean>
  /** Every directory whose name is a backup's ID; others are somebody else's and never touched. */
  list(): Promise<TargetEntry[]>
}
