// A backup of one tenant, and the work that is done with it.
import type { OperationKind } from '../tenants/index.ts'

export type BackupState = 'running' | 'complete' | 'failed'

export interface Backup {
  id: string
  tenantId: string
  region: string
  state: BackupState
  trigger: 'request' | 'schedule'
  plannedAt: Date | undefined
  /** In the target; undefined before it is complete. */
  bytes: number | undefined
  /** SHA-256 of the manifest. */
  manifestHash: string | undefined
  error: string | undefined
  createdAt: Date
  finishedAt: Date | undefined
  /** When a restored copy was last compared with it, and what was found wrong. */
  verifiedAt: Date | undefined
  verifyError: string | undefined
}

export type JobKind = Extract<OperationKind, 'backup' | 'restore' | 'verify'>
export const jobKinds = ['backup', 'restore', 'verify'] as const satisfies readonly JobKind[]

/** An open operation that is carried out with backups. */
export interface Job {
  operationId: string
  kind: JobKind
  /** Whose home is backed up or filled. */
  tenantId: string
  state: 'pending' | 'running'
  /** Begun so often before. */
  attempts: number
  backup: Backup
  /** 32 bytes. */
  key: Uint8Array
}
