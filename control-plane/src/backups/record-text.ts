// Reads the record of a backup in a target.
import { BackupError } from './backup-error.ts'
import { maxRecordBytes, recordPart } from './backup-record.ts'
import type { BackupTarget } from './backup-target.ts'

/** Returns the text of a record; undefined when the backup has none, and an empty text when it is too long to be ours. */
export async function recordText(target: BackupTarget, id: string, signal: AbortSignal): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of target.read(id, recordPart, signal)) {
      size += chunk.length
      if (size > maxRecordBytes) return ''
      chunks.push(chunk)
    }
  } catch (cause) {
    if (cause instanceof BackupError && cause.code === 'INCOMPLETE') return undefined
    throw cause
  }
  return Buffer.concat(chunks).toString()
}
