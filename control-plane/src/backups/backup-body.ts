// The bodies of backups in the API.
import { Type, type Static } from 'typebox'
import type { Backup } from './backup.ts'
import type { BackupWrite } from './backup-store.ts'
import { OperationBody, toOperationBody } from '../tenants/index.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])

export const BackupBody = Type.Object({
  id: Type.String(),
  tenant_id: Type.String({ description: 'The tenant may be deleted' }),
  region: Type.String(),
  state: Type.Enum(['running', 'complete', 'failed']),
  trigger: Type.Enum(['request', 'schedule']),
  planned_at: Maybe,
  bytes: Type.Union([Type.Integer({ description: 'Stored size: compressed and encrypted' }), Type.Null()]),
  manifest_sha256: Maybe,
  error: Maybe,
  created: Type.String({ description: 'ISO 8601, UTC' }),
  finished: Maybe,
  verified: Type.Union([
    Type.String({ description: 'When a restored copy was last compared with the backup' }),
    Type.Null(),
  ]),
  verify_error: Maybe,
})
export const BackupWithOperation = Type.Object({ ...BackupBody.properties, operation: OperationBody })

export function toBackupBody(backup: Backup): Static<typeof BackupBody> {
  return {
    id: backup.id,
    tenant_id: backup.tenantId,
    region: backup.region,
    state: backup.state,
    trigger: backup.trigger,
    planned_at: backup.plannedAt?.toISOString() ?? null,
    bytes: backup.bytes ?? null,
    manifest_sha256: backup.manifestHash ?? null,
    error: backup.error ?? null,
    created: backup.createdAt.toISOString(),
    finished: backup.finishedAt?.toISOString() ?? null,
    verified: backup.verifiedAt?.toISOString() ?? null,
    verify_error: backup.verifyError ?? null,
  }
}

export const toBodyWithOperation = ({ backup, operation }: BackupWrite) => ({
  ...toBackupBody(backup),
  operation: toOperationBody(operation),
})
