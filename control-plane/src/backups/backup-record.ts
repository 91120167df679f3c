// The record that describes a backup in its directory, without the control database. It contains the backup's key,
// sealed with the master key and bound to the rest of the record. With the master key and the directory, the backup can
// be adopted.
import { createHash } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { Seal } from '../platform/seal.ts'

/** The name of the record's part. It is plain text, because it contains none of the tenant's content. */
export const recordPart = 'record'
export const maxRecordBytes = 64 * 1024

const format = 1
const Time = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$' })

const Description = Type.Object({
  installation: Type.String(),
  backup_id: Type.String(),
  tenant_id: Type.String(),
  tenant_name: Type.String(),
  plan: Type.String(),
  isolation: Type.String(),
  region: Type.String(),
  trigger: Type.Enum(['request', 'schedule']),
  planned_at: Type.Union([Time, Type.Null()]),
  created_at: Time,
  finished_at: Time,
  /** The size of the encrypted parts. */
  bytes: Type.Integer(),
  manifest_sha256: Type.String(),
})
export type BackupDescription = Static<typeof Description>

const BackupRecord = Type.Object({
  format: Type.Literal(format),
  description: Description,
  /** A fingerprint of the master key that sealed the backup's key. */
  master_key: Type.String(),
  /** The sealed key, in base64. */
  sealed_key: Type.String(),
})

/** The reason why a backup that the control database does not know can't be adopted. */
type UnadoptableCode =
  'INCOMPLETE' | 'NO_RECORD' | 'RECORD_DAMAGED' | 'DAMAGED' | 'OTHER_INSTALLATION' | 'OTHER_MASTER_KEY'

interface Unadoptable {
  code: UnadoptableCode
  message: string
}

/** The content of a record. It has a `key` when the record is of this installation and was not changed. */
export type ReadRecord =
  | { description: BackupDescription; key: Uint8Array; error?: undefined }
  | { description: BackupDescription | undefined; key?: undefined; error: Unadoptable }

/** Writes and reads the records of backups. */
export type BackupRecords = ReturnType<typeof createBackupRecords>

/** Creates the writer and reader of backups' records. `seal` encrypts each backup's key. */
export function createBackupRecords({ seal, installation }: { seal: Seal; installation: string }) {
  return {
    /** Returns the text of a record. */
    write(described: Omit<BackupDescription, 'installation'>, key: Uint8Array): string {
      const description = { ...described, installation }
      const sealed = seal.seal(Buffer.from(key).toString('base64'), contextOf(description))
      const record = {
        format,
        description,
        master_key: seal.masterKeyId,
        sealed_key: Buffer.from(sealed).toString('base64'),
      }
      return JSON.stringify(record, null, 2)
    },

    /**
     * Reads a record.
     * @param text undefined when the backup has no record
     */
    read(text: string | undefined, backupId: string): ReadRecord {
      if (text === undefined) {
        return unadoptable('NO_RECORD', 'The backup has no record. Its key was only in the control database.')
      }
      const record = parsed(text)
      if (record === undefined || record.description.backup_id !== backupId) {
        return unadoptable('RECORD_DAMAGED', 'The record of the backup is damaged or belongs to another backup.')
      }
      const { description, master_key: masterKeyId } = record
      if (description.installation !== installation) {
        const other = description.installation.slice(0, 100)
        return unadoptable(
          'OTHER_INSTALLATION',
          `The backup is of the installation "${other}". This is the installation "${installation}".`,
          description,
        )
      }
      if (!seal.masterKeyIds.includes(masterKeyId)) {
        return unadoptable('OTHER_MASTER_KEY', 'The key of the backup is sealed with another master key.', description)
      }
      try {
        const key = Buffer.from(seal.open(Buffer.from(record.sealed_key, 'base64'), contextOf(description)), 'base64')
        return { description, key }
      } catch {
        return unadoptable('RECORD_DAMAGED', 'The record of the backup was changed after it was written.')
      }
    },
  }
}

function unadoptable(code: UnadoptableCode, message: string, description?: BackupDescription): ReadRecord {
  return { description, error: { code, message } }
}

function parsed(text: string): Static<typeof BackupRecord> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(BackupRecord, value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the context that binds the sealed key to exactly this description. */
function contextOf(description: BackupDescription): string {
  const names = Object.keys(Description.properties) as (keyof BackupDescription)[]
  const hash = createHash('sha256')
    .update(JSON.stringify(names.map((name) => description[name])))
    .digest('hex')
  return `backup-record:${hash}`
}
