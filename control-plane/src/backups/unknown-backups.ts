// Finds backups in the quarantine, which the control database does not know, by their directories, and reads their
// records.
import { BackupError } from './backup-error.ts'
import { maxRecordBytes, recordPart, type BackupRecords, type ReadRecord } from './backup-record.ts'
import type { BackupTarget } from './backup-target.ts'
import { openFiles } from './parts.ts'

export interface UnknownBackup {
  id: string
  record: ReadRecord
}

export interface UnknownBackups {
  /** Returns the ids, sorted. */
  ids(): Promise<string[]>
  /** Returns those of the IDs that are in the quarantine, in their order. */
  get(ids: readonly string[], signal: AbortSignal): Promise<UnknownBackup[]>
}

/** Reads the backups in the target's quarantine, which the control database does not know. */
export function createUnknownBackups(target: BackupTarget, records: BackupRecords): UnknownBackups {
  /** Maps each ID to whether the backup is whole. */
  const quarantined = async () => {
    const found = new Map<string, boolean>()
    for (const { id, content, isQuarantined } of await target.list()) {
      if (isQuarantined && content !== 'removing') found.set(id, found.get(id) === true || content === 'whole')
    }
    return found
  }
  const recordOf = async (id: string, isWhole: boolean, signal: AbortSignal): Promise<ReadRecord> => {
    if (!isWhole) {
      return {
        description: undefined,
        error: { code: 'INCOMPLETE', message: 'The backup is incomplete: it was interrupted.' },
      }
    }
    const record = records.read(await recordText(target, id, signal), id)
    return record.error === undefined ? withManifest(target, id, record, signal) : record
  }
  return {
    ids: async () => [...(await quarantined()).keys()].sort(),

    async get(ids, signal) {
      const found = await quarantined()
      const backups: UnknownBackup[] = []
      for (const id of ids) {
        const isWhole = found.get(id)
        if (isWhole !== undefined) backups.push({ id, record: await recordOf(id, isWhole, signal) })
      }
      return backups
    },
  }
}

/** Checks that the key decrypts the manifest that the record names. Otherwise the backup can't be adopted. */
async function withManifest(
  target: BackupTarget,
  id: string,
  record: Extract<ReadRecord, { key: Uint8Array }>,
  signal: AbortSignal,
): Promise<ReadRecord> {
  const { description, key } = record
  try {
    if ((await openFiles(target, id, key, signal).manifestHash()) === description.manifest_sha256) return record
  } catch (cause) {
    if (!(cause instanceof BackupError)) throw cause
  }
  return { description, error: { code: 'DAMAGED', message: 'The manifest of the backup is damaged or missing.' } }
}

async function recordText(target: BackupTarget, id: string, signal: AbortSignal): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of target.read(id, recordPart, signal)) {
      size += chunk.length
      // A record of this size is not ours and counts as damaged.
      if (size > maxRecordBytes) return ''
      chunks.push(chunk)
    }
  } catch (cause) {
    if (cause instanceof BackupError && cause.code === 'INCOMPLETE') return undefined
    throw cause
  }
  return Buffer.concat(chunks).toString()
}
