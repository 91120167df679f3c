// What the API asks of the place where tenants are kept. Every write carries the change, its operation and its audit entry.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { OwnRate } from '../quotas/index.ts'
import type { ComponentSize, DriftPolicy, Operation, OperationKind, SecretKind, Status, Tenant } from './tenant.ts'
import type { Isolation } from '../stacks/index.ts'

export interface NewTenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  /** Absent: the plan's. */
  rateLimit?: OwnRate
  secrets: Record<SecretKind, string>
}

/** Null takes back what was set. */
export interface TenantChange {
  name?: string
  plan?: string
  suspended?: boolean
  suspendReason?: string | null
  paymentRequired?: boolean
  driftPolicy?: DriftPolicy
  /** Null: the plan's. What is not named stays as it is. */
  resources?: SizeChanges | null
  /** Null: the region's; 0: never. */
  pauseAfterSeconds?: number | null
  backupSchedule?: string | null
  backupsKept?: number
  /** Null: the plan's. */
  rateLimit?: OwnRate | null
}

export interface SizeChanges {
  postgres?: Partial<ComponentSize>
  runtime?: Partial<ComponentSize>
}

interface TenantFilter {
  plan?: string
  region?: string
  status?: Status
  namePrefix?: string
}

/** A tenant as a write has left it, and the operation that carries the change out. */
export interface TenantWrite {
  tenant: Tenant
  operation: Operation
}

/** With the secrets that hold: those of a tenant made in advance were made with it. */
export interface TenantCreated extends TenantWrite {
  secrets: Record<SecretKind, string>
}

/** `operation` is the one under way; undefined when there is nothing to do. */
export interface TenantState {
  tenant: Tenant
  operation: Operation | undefined
}

/**
 * Tenants made in advance are nobody's: nothing here shows them. `resources` of a tenant are those in effect, its own or
 * its plan's; undefined for one without services of its own.
 */
export interface TenantStore {
  /**
   * Claims a tenant that was made in advance, if there is one of the kind: then the id is that one's.
   * @throws ControlError NAME_TAKEN
   */
  create(tenant: NewTenant, write: RecordedWrite): Promise<TenantCreated>
  /** Undefined when there is no such tenant. */
  get(id: string): Promise<Tenant | undefined>
  /** Tenants that match every given field, the oldest first. */
  list(filter: TenantFilter, page: PageRequest): Promise<Page<Tenant>>
  /**
   * Raises the generation. `ifMatch` is the generation the caller has seen.
   * @throws ControlError TENANT_NOT_FOUND, STALE_ETAG, OPERATION_UNDER_WAY, TENANT_DELETED, NAME_TAKEN, NOT_SUSPENDED
   */
  update(id: string, change: TenantChange, ifMatch: number | undefined, write: RecordedWrite): Promise<TenantWrite>
  /** Changes nothing. @throws what `update` does for the state that the tenant is in */
  rejectBusy(id: string, ifMatch: number | undefined): Promise<void>
  /** Supersedes whatever is under way. Asked again with an earlier `purgeAfter`, that holds. */
  requestDelete(id: string, purgeAfter: Date, ifMatch: number | undefined, write: RecordedWrite): Promise<TenantWrite>
  /** New API keys and a new token secret; the old ones are honoured until `expireAt`. */
  rotateKeys(
    id: string,
    secrets: Pick<Record<SecretKind, string>, 'jwt_secret' | 'publishable_key' | 'secret_key'>,
    expireAt: Date,
    write: RecordedWrite,
  ): Promise<TenantWrite>
  /** Every service is made anew, one after the other where it can be. @throws ControlError as `update` does */
  restart(id: string, write: RecordedWrite): Promise<TenantWrite>
  /** @throws ControlError NOT_ACTIVE for a suspended tenant; else as `update` does. A paused one stays as it is */
  pause(id: string, write: RecordedWrite): Promise<TenantState>
  /** Supersedes a pause under way. What is not paused stays as it is. @throws ControlError TENANT_NOT_FOUND, TENANT_DELETED */
  wake(id: string, write: RecordedWrite): Promise<TenantState>
  /** Undefined when there is no such operation. */
  getOperation(id: string): Promise<Operation | undefined>
  /** Operations that match every given field, the oldest first. */
  listOperations(
    filter: { tenantId?: string; kind?: OperationKind; state?: Operation['state'] },
    page: PageRequest,
  ): Promise<Page<Operation>>
}
