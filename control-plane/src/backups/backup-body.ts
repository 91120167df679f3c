// The bodies of backups in the API.
import { Type, type Static } from 'typebox'
import type { Backup } from './backup.ts'
import type { BackupWrite } from './store.ts'
import { OperationBody, toOperationBody } from '../tenants/index.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])

export const BackupBody = Type.Object({
  id: Type.String(),
  tenant_id: Type.String({ description: 'The tenant may be deleted' }),
  region: Type.String(),
  isolation: Type.String({
    description:
      'The isolation model of the tenant. A new tenant that the backup is restored into may have another one',
  }),
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
  recovered_to: Type.Union([
    Type.String({ description: "The moment of a backup that was made from the tenant's archive" }),
    Type.Null(),
  ]),
})
export const BackupWithCopies = Type.Object({
  ...BackupBody.properties,
  copies: Type.Array(Type.Object({ target: Type.String(), state: Type.Enum(['complete', 'missing', 'unavailable']) }), {
    description: 'What each backup target has of it now. `unavailable`: the target does not respond',
  }),
})
export const BackupWithOperation = Type.Object({ ...BackupBody.properties, operation: OperationBody })

export function toBackupBody(backup: Backup): Static<typeof BackupBody> {
  return {
    id: backup.id,
    tenant_id: backup.tenantId,
    region: backup.region,
    isolation: backup.isolation,
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
    recovered_to: backup.recoveredTo?.toISOString() ?? null,
  }
}

export const toBodyWithOperation = ({ backup, operation }: BackupWrite) => ({
  ...toBackupBody(backup),
  operation: toOperationBody(operation),
})
