// Where backups are kept: a small store of parts, of which those of a backup appear all at once or not at all.

export interface BackupTarget {
  /** A part of a backup that is being made; on disk when this returns. @returns bytes written @throws BackupError DISK_FULL */
  write(backupId: string, part: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>
  /** The backup is whole from here on, and survives a power cut. */
  commit(backupId: string): Promise<void>
  /** @throws BackupError INCOMPLETE when there is no such part */
  read(backupId: string, part: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Whatever there is of it; what is absent is no error. */
  remove(backupId: string): Promise<void>
  /** Ids of which there is something, whole or not. */
  list(): Promise<string[]>
}
