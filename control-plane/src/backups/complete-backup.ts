// The last steps of making a backup: its manifest, its record, and the commit, without which there is no backup.
import type { Clock } from '../platform/clock.ts'
import type { Pace } from '../platform/pace.ts'
import { formatVersion, manifestHash, type Manifest } from './manifest.ts'
import type { BackupFiles } from './parts.ts'

/** A backup that was made. */
export interface Taken {
  bytes: number
  manifestHash: string
}

/** A backup that is being made. */
export interface BackupInProgress {
  backupId: string
  tenant: { id: string; name: string }
  files: BackupFiles
  clock: Clock
  /** The pace at which the home is read. */
  pace: Pace
  /** Returns the text of the record, which describes the backup when the control database does not know it. */
  record: (taken: Taken) => string
  /** Records each step. */
  step: (name: string) => Promise<void>
}

/** The manifest of a backup without the fields that name the backup. */
type BackupContent = Omit<Manifest, 'format' | 'backup_id' | 'tenant_id' | 'tenant_name'>

/** Writes the manifest and the record of a backup whose parts are written, and commits it. */
export async function completeBackup(
  { backupId, tenant, files, record, step }: BackupInProgress,
  content: BackupContent,
): Promise<Taken> {
  const manifest: Manifest = {
    format: formatVersion,
    backup_id: backupId,
    tenant_id: tenant.id,
    tenant_name: tenant.name,
    ...content,
  }
  const text = JSON.stringify(manifest)
  await files.writeManifest(text)
  const taken = { bytes: files.bytes(), manifestHash: manifestHash(text) }
  await files.writeRecord(record(taken))
  await step('commit')
  await files.commit()
  return taken
}
