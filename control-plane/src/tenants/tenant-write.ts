// What writes of tenants receive and return.
import type { OwnRate } from '../quotas/index.ts'
import type { ComponentSize, DriftPolicy, Operation, SecretKind, Tenant } from './tenant.ts'
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
  /** Days that point-in-time recovery covers; null for no archive. */
  archiveDays?: number | null
  /** The tenant's own rate; null for the plan's. */
  rateLimit?: OwnRate | null
}

/** The fields of a change on which the sizes of services depend. */
export type SizeChange = Pick<TenantChange, 'plan' | 'resources'>

export interface SizeChanges {
  postgres?: Partial<ComponentSize>
  runtime?: Partial<ComponentSize>
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
