// Finds backups in the quarantine, which the control database does not know, by their directories, and reads their
// records.
import { BackupError } from './backup-error.ts'
import { type BackupRecords, type ReadRecord } from './backup-record.ts'
import type { BackupTarget } from './backup-target.ts'
import { openFiles } from './parts.ts'
import { recordText } from './record-text.ts'
import type { BackupTargets } from './target-set.ts'

export interface UnknownBackup {
  id: string
  record: ReadRecord
}

/** The backups in the quarantine. */
export type UnknownBackups = ReturnType<typeof createUnknownBackups>

/** Reads the backups in the targets' quarantines, which the control database does not know. */
export function createUnknownBackups(targets: BackupTargets, records: BackupRecords) {
  /** Maps each ID to the targets that have the whole backup. */
  const quarantined = async (backupId?: string) => {
    const found = new Map<string, BackupTarget[]>()
    for (const { target, entries = [] } of await targets.list(backupId)) {
      for (const { id, content, isQuarantined } of entries) {
        if (!isQuarantined || content === 'removing') continue
        found.set(id, [...(found.get(id) ?? []), ...(content === 'whole' ? [target] : [])])
      }
    }
    return found
  }
  /** Reads the first record with which the backup can be adopted, or the first record. */
  const recordOf = async (id: string, whole: readonly BackupTarget[], signal: AbortSignal): Promise<ReadRecord> => {
    let first: ReadRecord | undefined
    for (const target of whole) {
      const record = records.read(await recordText(target, id, signal), id)
      const checked = record.error === undefined ? await withManifest(target, id, record, signal) : record
      if (checked.error === undefined) return checked
      first ??= checked
    }
    return (
      first ?? {
        description: undefined,
        error: { code: 'INCOMPLETE', message: 'The backup is incomplete: it was interrupted.' },
      }
    )
  }
  return {
    /** Returns the ids, sorted. */
    ids: async (): Promise<string[]> => [...(await quarantined()).keys()].sort(),

    /** Returns those of the IDs that are in the quarantine, in their order. */
    async get(ids: readonly string[], signal: AbortSignal): Promise<UnknownBackup[]> {
      const found = await quarantined(ids.length === 1 ? ids[0] : undefined)
      const backups: UnknownBackup[] = []
      for (const id of ids) {
        const whole = found.get(id)
        if (whole !== undefined) backups.push({ id, record: await recordOf(id, whole, signal) })
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
