// What the API asks of the place where backups are recorded. Every write carries its audit entry.
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
  /** @throws ControlError TENANT_NOT_FOUND, TENANT_DELETED, NOT_DEDICATED, NOT_ACTIVE, OPERATION_UNDER_WAY */
  request(tenantId: string, write: RecordedWrite): Promise<BackupWrite>
  get(id: string): Promise<Backup | undefined>
  /** Of a tenant that may be gone, oldest first. */
  list(tenantId: string, page: PageRequest): Promise<Page<Backup>>
  /** Of all tenants, oldest first; of one state only when it is given. */
  listAll(state: BackupState | undefined, page: PageRequest): Promise<Page<Backup>>
  /** IDs of all complete ones. */
  completeIds(): Promise<string[]>
  /** In the order of their IDs. */
  getMany(ids: readonly string[]): Promise<Backup[]>
  /** Records a backup that the control database did not know; one that it knows by now stays as it is. No schedule removes it. */
  adopt(adopted: { description: BackupDescription; key: Uint8Array }, write: RecordedWrite): Promise<Backup>
  /**
   * Records the decision to remove a backup that the control database does not know.
   * @throws ControlError BACKUP_IN_USE when it knows it by now
   */
  recordUnknownRemoved(id: string, write: RecordedWrite): Promise<void>
  /** Forgets it with its key. @throws ControlError BACKUP_NOT_FOUND, BACKUP_IN_USE */
  remove(id: string, write: RecordedWrite): Promise<Backup>
  /** @throws ControlError BACKUP_NOT_FOUND, BACKUP_NOT_COMPLETE, OPERATION_UNDER_WAY */
  requestVerify(id: string, write: RecordedWrite): Promise<BackupWrite>
  /** Into the tenant that it is of. @throws ControlError as `request` and `requestVerify` */
  requestRestore(id: string, write: RecordedWrite): Promise<BackupWrite>
  /** Into a tenant that is made for it. @throws ControlError as `requestVerify`; NAME_TAKEN */
  requestRestoreInto(id: string, tenant: RestoredTenant, write: RecordedWrite): Promise<TenantWrite>
}
