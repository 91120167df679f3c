// The API's interface of the tenant store. Every write carries the change, its operation and its audit entry.
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
  /** The tenant's own rate; absent for the plan's. */
  rateLimit?: OwnRate
  secrets: Record<SecretKind, string>
}

/** Fields that change. Null removes a value that was set. */
export interface TenantChange {
  name?: string
  plan?: string
  suspended?: boolean
  suspendReason?: string | null
  paymentRequired?: boolean
  driftPolicy?: DriftPolicy
  /** Sizes of the tenant's services; null for the plan's. Absent fields stay unchanged. */
  resources?: SizeChanges | null
  /** Idle time until a pause; null for the region's default, 0 for never. */
  pauseAfterSeconds?: number | null
  backupSchedule?: string | null
  backupsKept?: number
  /** The tenant's own rate; null for the plan's. */
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

/** A tenant after a write, with the operation that carries out the change. */
export interface TenantWrite {
  tenant: Tenant
  operation: Operation
}

/** A created tenant with its valid secrets. One that was created in advance already had them. */
export interface TenantCreated extends TenantWrite {
  secrets: Record<SecretKind, string>
}

/** A tenant with its operation in progress; undefined if no change was necessary. */
export interface TenantState {
  tenant: Tenant
  operation: Operation | undefined
}

/**
 * The store of tenants. It does not return unclaimed tenants that were created in advance. A tenant's `resources` are
 * those in effect, its own or its plan's; undefined without services of its own.
 */
export interface TenantStore {
  /**
   * Creates a tenant, or claims a matching one that was created in advance, whose ID it then has.
   * @throws ControlError NAME_TAKEN
   */
  create(tenant: NewTenant, write: RecordedWrite): Promise<TenantCreated>
  /** Returns a tenant; undefined if it does not exist. */
  get(id: string): Promise<Tenant | undefined>
  /** Lists tenants that match every given field, the oldest first. */
  list(filter: TenantFilter, page: PageRequest): Promise<Page<Tenant>>
  /**
   * Changes a tenant and increments its generation.
   * @param ifMatch generation that the caller expects
   * @throws ControlError TENANT_NOT_FOUND, STALE_ETAG, OPERATION_IN_PROGRESS, TENANT_DELETED, NAME_TAKEN, NOT_SUSPENDED
   */
  update(id: string, change: TenantChange, ifMatch: number | undefined, write: RecordedWrite): Promise<TenantWrite>
  /**
   * Checks that a tenant can be changed, and changes nothing. @throws ControlError as `update` does for the tenant's
   * state
   */
  rejectBusy(id: string, ifMatch: number | undefined): Promise<void>
  /**
   * Requests the deletion, and supersedes operations in progress. The earliest `purgeAfter` of several requests
   * applies.
   */
  requestDelete(id: string, purgeAfter: Date, ifMatch: number | undefined, write: RecordedWrite): Promise<TenantWrite>
  /** Stores new API keys and a new token secret. The old ones stay valid until `expireAt`. */
  rotateKeys(
    id: string,
    secrets: Pick<Record<SecretKind, string>, 'jwt_secret' | 'publishable_key' | 'secret_key'>,
    expireAt: Date,
    write: RecordedWrite,
  ): Promise<TenantWrite>
  /** Restarts every service, one after the other if possible. @throws ControlError as `update` does */
  restart(id: string, write: RecordedWrite): Promise<TenantWrite>
  /**
   * Pauses a tenant; a paused one stays unchanged. @throws ControlError NOT_ACTIVE for a suspended tenant; otherwise as
   * `update` does
   */
  pause(id: string, write: RecordedWrite): Promise<TenantState>
  /**
   * Wakes a tenant and supersedes a pause in progress; other tenants stay unchanged. @throws ControlError
   * TENANT_NOT_FOUND, TENANT_DELETED
   */
  wake(id: string, write: RecordedWrite): Promise<TenantState>
  /** Returns an operation; undefined if it does not exist. */
  getOperation(id: string): Promise<Operation | undefined>
  /** Lists operations that match every given field, the oldest first. */
  listOperations(
    filter: { tenantId?: string; kind?: OperationKind; state?: Operation['state'] },
    page: PageRequest,
  ): Promise<Page<Operation>>
}
