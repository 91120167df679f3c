// What the API asks of the place where backups are recorded. Every write is one transaction with its audit entry.
import type { Isolation, Operation, SecretKind } from '../tenants/tenant.ts'
import type { Page, PageRequest, TenantWrite, WriteContext } from '../tenants/tenant-store.ts'
import type { Backup } from './backup.ts'

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
  request(tenantId: string, context: WriteContext, answer: (write: BackupWrite) => unknown): Promise<BackupWrite>
  get(id: string): Promise<Backup | undefined>
  /** Of a tenant that may be gone, oldest first. */
  list(tenantId: string, page: PageRequest): Promise<Page<Backup>>
  /** Forgets it with its key: what is left of it can't be read any more. @throws ControlError BACKUP_NOT_FOUND, BACKUP_IN_USE */
  remove(id: string, context: WriteContext): Promise<Backup>
  /** @throws ControlError BACKUP_NOT_FOUND, BACKUP_NOT_COMPLETE, OPERATION_UNDER_WAY */
  requestVerify(id: string, context: WriteContext, answer: (write: BackupWrite) => unknown): Promise<BackupWrite>
  /** Into the tenant that it is of. @throws ControlError as `request` and `requestVerify` */
  requestRestore(id: string, context: WriteContext, answer: (write: BackupWrite) => unknown): Promise<BackupWrite>
  /** Into a tenant that is made for it. @throws ControlError as `requestVerify`; NAME_TAKEN */
  requestRestoreInto(id: string, tenant: RestoredTenant, context: WriteContext, answer: (write: TenantWrite) => unknown): Promise<TenantWrite>
}
