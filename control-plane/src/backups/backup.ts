// A backup of one tenant, and the jobs that make, restore and verify it.
import type { Isolation } from '../stacks/index.ts'
import type { OperationKind } from '../tenants/index.ts'

export type BackupState = 'running' | 'complete' | 'failed'

export interface Backup {
  id: string
  tenantId: string
  region: string
  /** The isolation model of the tenant. */
  isolation: Isolation
  state: BackupState
  trigger: 'request' | 'schedule'
  plannedAt: Date | undefined
  /** The bytes in the target; undefined before the backup is complete. */
  bytes: number | undefined
  /** The SHA-256 of the manifest. */
  manifestHash: string | undefined
  error: string | undefined
  createdAt: Date
  finishedAt: Date | undefined
  /** The time at which a restored copy was last compared with the backup. `verifyError` is the difference that was found. */
  verifiedAt: Date | undefined
  verifyError: string | undefined
  /** The moment of a backup that is made from the tenant's archive; undefined for one of the running tenant. */
  recoveredTo: Date | undefined
}

export type JobKind = Extract<OperationKind, 'backup' | 'restore' | 'verify'>
export const jobKinds = ['backup', 'restore', 'verify'] as const satisfies readonly JobKind[]

/** An open operation on a backup. */
export interface Job {
  operationId: string
  kind: JobKind
  /** The tenant whose home is backed up or filled. */
  tenantId: string
  state: 'pending' | 'running'
  /** The number of earlier attempts. */
  attempts: number
  backup: Backup
  /** The backup's key, 32 bytes. */
  key: Uint8Array
}
