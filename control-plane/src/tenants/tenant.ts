// A tenant and its operations, as the control plane stores them.
import type { RepairTarget } from '../engines/index.ts'
import type { Isolation } from '../stacks/index.ts'
import type { HeldRate } from '../quotas/index.ts'

/**
 * Desired state of a tenant. `warm`: created in advance and not claimed. `restoring`: not started before its data is
 * restored.
 */
export type Desired = 'active' | 'suspended' | 'paused' | 'warm' | 'restoring' | 'deleted'

export const statuses = ['pending', 'ready', 'suspended', 'paused', 'warm', 'deleting', 'failed'] as const
/** Status that the reconciler last recorded for a tenant. */
export type Status = (typeof statuses)[number]

/** Reactions to differences that no client requested. */
export const driftPolicies = ['repair', 'report', 'ignore'] as const
/** A policy for differences: repair one, report it in the condition `Drift`, or neither. */
export type DriftPolicy = (typeof driftPolicies)[number]

export const conditionTypes = [
  'Services',
  'Spread',
  'Home',
  'Database',
  'Quorum',
  'Replicating',
  'Runtime',
  'Route',
  'Drift',
  'Disk',
  'Loss',
  'Backup',
  'Sql',
  'Spending',
] as const

/** An observation of a tenant with its time. */
export interface Condition {
  type: (typeof conditionTypes)[number]
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  /** Time in ISO 8601, UTC. */
  observed_at: string
}

/** A tenant as the control plane stores it, without its secrets (specification, section 2.6). */
export interface Tenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  /** Isolation of the plan, which the region may not support. */
  planIsolation: Isolation
  /** Name of the shared database that holds the home. */
  database: string | undefined
  desired: Desired
  status: Status
  reason: string | undefined
  generation: number
  observedGeneration: number
  conditions: Condition[]
  createdAt: Date
  updatedAt: Date
  deleteRequestedAt: Date | undefined
  purgeAfter: Date | undefined
  driftPolicy: DriftPolicy
  suspendReason: string | undefined
  paymentRequired: boolean
  /** Sizes of its services. A row without sizes has the plan's; `TenantStore` returns those in effect. */
  resources: ComponentSizes | undefined
  runtimeImage: string | undefined
  /** Idle time until a pause; undefined for the region's default, 0 for never. */
  pauseAfterSeconds: number | undefined
  /** Cron expression, UTC. */
  backupSchedule: string | undefined
  backupsKept: number
  /** Days that point-in-time recovery covers; undefined without an archive. */
  archiveDays: number | undefined
  /** Rate of requests at each gateway. */
  rateLimit: HeldRate
}

/** Limits of one service of a tenant. */
export interface ComponentSize {
  memoryBytes: number
  /** Thousandths of a core. */
  cpuMillis: number
}

/** Limits of each service of a tenant with services of its own. */
export interface ComponentSizes {
  postgres: ComponentSize
  runtime: ComponentSize
}

export const operationKinds = [
  'create',
  'update',
  'delete',
  'undelete',
  'rotate_keys',
  'rotate_database_password',
  'rotate_service_passwords',
  'suspend',
  'resume',
  'pause',
  'wake',
  'restart',
  'resize',
  'upgrade',
  'switchover',
  'move',
  'move_service',
  'repair',
  'backup',
  'restore',
  'verify',
] as const
/** Kind of an operation on a tenant. */
export type OperationKind = (typeof operationKinds)[number]

/** The switchover of a cluster that an operation carries out. */
export interface Switchover {
  /** The primary at the time of the request. */
  from: string
  /** The member that becomes the primary; null: any but `from`. */
  to: string | null
}

/** The move of a cluster's service to another host of the region. */
export interface ServiceMove {
  service: string
  /** IDs of the hosts. */
  from: string
  to: string
}

/** The repair of a tenant's drift that an operation carries out. */
export interface DriftRepair {
  /** The fields, and whole components, that are repaired; null: everything. */
  targets: RepairTarget[] | null
}

/** The move of a home to another database, with its progress. */
export interface Move {
  /** Names of the databases. */
  from: string
  to: string
  /** The regions before and after the move; undefined if it stays. */
  fromRegion: string | undefined
  toRegion: string | undefined
  /** The isolation models before and after the move; undefined if it stays. */
  fromIsolation: string | undefined
  toIsolation: string | undefined
  rows: number
  bytes: number
  /** Bytes of the write-ahead log that are still to be read; undefined before the changes are. */
  pendingBytes: number | undefined
  /** Description of the cause for which the move waits; undefined for none. */
  waitsFor: string | undefined
  /** The operation that this one reverts; undefined for none. */
  reverts: string | undefined
  /** The time until which the move can be reverted, as ISO 8601; undefined if it cannot. */
  revertibleUntil: string | undefined
  /** The reason for which the move cannot be reverted; undefined if it can, or is not complete. */
  notRevertibleReason: string | undefined
}

/** An operation on a tenant, with its progress. */
export interface Operation {
  id: string
  tenantId: string
  kind: OperationKind
  state: 'pending' | 'running' | 'succeeded' | 'failed' | 'superseded'
  step: string | undefined
  attempts: number
  error: string | undefined
  generation: number
  createdAt: Date
  startedAt: Date | undefined
  finishedAt: Date | undefined
  /** Undefined for operations of other kinds. */
  move: Move | undefined
}

export const secretKinds = [
  'runtime_password',
  'ddl_password',
  'admin_password',
  'jwt_secret',
  'signing_secret',
  'publishable_key',
  'secret_key',
] as const
/** Kind of a tenant's secret. Several of one kind are valid during a rotation. */
export type SecretKind = (typeof secretKinds)[number]

/** Kinds of operations that do not change the desired state, and so have no generation of their own. */
export const alongsideGenerations = ['backup', 'verify'] as const
