// Converts rows of backups into values.
import type { Backup as BackupRow } from '../../../prisma/client/client.ts'
import type { Backup } from './backup.ts'

/** Returns the context that binds a backup's sealed key to the backup. */
export function keyContext(backupId: string): string {
  return `backup:${backupId}`
}

export function toBackup(row: BackupRow): Backup {
  return {
    id: row.id,
    tenantId: row.tenantId,
    region: row.regionId,
    isolation: row.isolation as Backup['isolation'],
    // Check constraints limit these to their values.
    state: row.state as Backup['state'],
    trigger: row.trigger as Backup['trigger'],
    plannedAt: row.plannedAt ?? undefined,
    bytes: row.bytes === null ? undefined : Number(row.bytes),
    manifestHash: row.manifestHash ?? undefined,
    error: row.error ?? undefined,
    createdAt: row.createdAt,
    finishedAt: row.finishedAt ?? undefined,
    verifiedAt: row.verifiedAt ?? undefined,
    verifyError: row.verifyError ?? undefined,
    recoveredTo: row.recoveredTo ?? undefined,
  }
}
