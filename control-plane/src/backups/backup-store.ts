// The store of backups, as the API uses it. Every write carries its audit entry.
import type { Operation, SecretKind, TenantWrite } from '../tenants/index.ts'
import type { Isolation } from '../stacks/index.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Backup, BackupState } from './backup.ts'
import type { BackupDescription } from './backup-record.ts'

export interface BackupWrite {
  backup: Backup
  operation: Operation
}

export interface RestoredTenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  secrets: Record<SecretKind, string>
}

export interface BackupStore {
  /**
   * Requests a backup of a tenant.
   * @throws ControlError TENANT_NOT_FOUND, TENANT_DELETED, NOT_DEDICATED, NOT_ACTIVE, OPERATION_IN_PROGRESS
   */
  request(tenantId: string, write: RecordedWrite): Promise<BackupWrite>
  get(id: string): Promise<Backup | undefined>
  /** Lists a tenant's backups, oldest first. The tenant may be deleted. */
  list(tenantId: string, page: PageRequest): Promise<Page<Backup>>
  /** Lists the backups of all tenants, oldest first; only those of `state` when it is given. */
  listAll(state: BackupState | undefined, page: PageRequest): Promise<Page<Backup>>
  /** Returns the IDs of all complete backups. */
  completeIds(): Promise<string[]>
  /** Returns backups in the order of their IDs. */
  getMany(ids: readonly string[]): Promise<Backup[]>
  /**
   * Records a backup that the control database does not know. One that it has come to know stays as it is. No schedule
   * removes it.
   */
  adopt(adopted: { description: BackupDescription; key: Uint8Array }, write: RecordedWrite): Promise<Backup>
  /**
   * Records the decision to remove a backup that the control database does not know.
   * @throws ControlError BACKUP_IN_USE when it has come to know it
   */
  recordUnknownRemoved(id: string, write: RecordedWrite): Promise<void>
  /**
   * Deletes a backup's row, with its key.
   * @throws ControlError BACKUP_NOT_FOUND, BACKUP_IN_USE
   */
  remove(id: string, write: RecordedWrite): Promise<Backup>
  /**
   * Requests the verification of a backup.
   * @throws ControlError BACKUP_NOT_FOUND, BACKUP_NOT_COMPLETE, OPERATION_IN_PROGRESS
   */
  requestVerify(id: string, write: RecordedWrite): Promise<BackupWrite>
  /**
   * Requests a restore into the backup's own tenant.
   * @throws ControlError as `request` and `requestVerify`
   */
  requestRestore(id: string, write: RecordedWrite): Promise<BackupWrite>
  /**
   * Requests a restore into a new tenant.
   * @throws ControlError as `requestVerify`; NAME_TAKEN
   */
  requestRestoreInto(id: string, tenant: RestoredTenant, write: RecordedWrite): Promise<TenantWrite>
}
