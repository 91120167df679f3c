// A store of backups' files. The parts of a backup appear all at once or not at all.

/** One backup in the target. */
export interface TargetEntry {
  id: string
  /** `whole`: committed. `making`: parts that are not committed. `removing`: the backup is being removed. */
  content: 'whole' | 'making' | 'removing'
  isQuarantined: boolean
}

/** Every call throws a BackupError TARGET_UNAVAILABLE when the target does not respond or rejects the request. */
export interface BackupTarget {
  /** The operator's name of the target, unique among the targets. */
  readonly name: string
  /**
   * Writes a part of a backup that is being made. It is stored durably when this returns. The chunks of `content` must not be
   * used afterwards.
   * @returns the bytes that were written
   * @throws BackupError DISK_FULL; the error of `content`
   */
  write(backupId: string, part: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>
  /** Commits the backup, which then survives a power failure. */
  commit(backupId: string): Promise<void>
  /**
   * Reads a part of a whole backup, quarantined or not.
   * @throws BackupError INCOMPLETE when there is no such part
   */
  read(backupId: string, part: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  /**
   * Reads a part of a backup that is being made, to compare it before the commit.
   * @throws BackupError INCOMPLETE when there is no such part
   */
  readUncommitted(backupId: string, part: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  /**
   * Returns the bytes of these parts of a whole backup; undefined when one of them is missing or the backup is in the
   * quarantine.
   */
  size(backupId: string, parts: readonly string[]): Promise<number | undefined>
  /** Removes the uncommitted parts of a backup. A whole backup stays. */
  discard(backupId: string): Promise<void>
  /**
   * Removes all files of a backup, also in the quarantine. The decision must be recorded before: an interrupted call
   * leaves an entry `removing`, which is removed later without another check. A missing backup is not an error.
   */
  remove(backupId: string): Promise<void>
  /**
   * Moves a backup, whole or not, into the quarantine. It is on disk when this returns. Quarantined files are never
   * overwritten.
   */
  quarantine(backupId: string): Promise<void>
  /**
   * Moves a whole backup back from the quarantine.
   * @returns false when there is none, or the target has another one with its ID
   */
  release(backupId: string): Promise<boolean>
  /**
   * Lists every entry whose name is a backup's ID. Others are foreign and never touched.
   * @param backupId limits the list to one backup
   */
  list(backupId?: string): Promise<TargetEntry[]>
}

/** The part of a target that writes and reads one backup. */
export type PartStore = Pick<BackupTarget, 'write' | 'commit' | 'read'>
