// Rows of backups as the values the rest of the control plane knows.
import type { Backup as BackupRow } from '../../../prisma/client/client.ts'
import type { Backup } from './backup.ts'

/** Binds a backup's sealed key to it. */
export function keyContext(backupId: string): string {
  return `backup:${backupId}`
}

export function toBackup(row: BackupRow): Backup {
  return {
    id: row.id,
    tenantId: row.tenantId,
    region: row.regionId,
    // Check constraints hold these to their values.
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
  }
}
