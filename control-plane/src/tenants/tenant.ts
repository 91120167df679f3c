// A tenant and its operations, as the control plane knows them.
import type { Isolation } from '../stacks/index.ts'
import type { HeldRate } from '../quotas/index.ts'

/** `warm`: made in advance, and nobody's yet. `restoring`: not begun before its data is in place. */
export type Desired = 'active' | 'suspended' | 'paused' | 'warm' | 'restoring' | 'deleted'

export const statuses = ['pending', 'ready', 'suspended', 'paused', 'warm', 'deleting', 'failed'] as const
/** What the reconciler last recorded of a tenant. */
export type Status = (typeof statuses)[number]

/** What to do about differences that nobody asked for. */
export const driftPolicies = ['repair', 'report', 'ignore'] as const
/** One of `driftPolicies`: repair a difference, show it in the condition `Drift` alone, or neither. */
export type DriftPolicy = (typeof driftPolicies)[number]

export const conditionTypes = ['Services', 'Home', 'Database', 'Runtime', 'Route', 'Drift', 'Disk', 'Loss'] as const

/** Something observed of a tenant, and when. */
export interface Condition {
  type: (typeof conditionTypes)[number]
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  /** ISO 8601, UTC. */
  observed_at: string
}

/** A tenant as the control plane knows it, without its secrets (specification, section 2.6). */
export interface Tenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  /** The plan's own model, whatever the region can provide. */
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
  /** As kept, undefined: the plan's; as `TenantStore` gives it: those in effect. */
  resources: ComponentSizes | undefined
  runtimeImage: string | undefined
  /** Undefined: the region's; 0: never. */
  pauseAfterSeconds: number | undefined
  /** Cron expression, UTC. */
  backupSchedule: string | undefined
  backupsKept: number
  /** Of requests at each gateway. */
  rateLimit: HeldRate
}

/** What the services of a tenant of its own may take. */
export interface ComponentSize {
  memoryBytes: number
  /** Thousandths of a core. */
  cpuMillis: number
}

/** What each service of a tenant with services of its own may take. */
export interface ComponentSizes {
  postgres: ComponentSize
  runtime: ComponentSize
}

export const operationKinds = [
  'create',
  'update',
  'delete',
  'rotate_keys',
  'suspend',
  'resume',
  'pause',
  'wake',
  'restart',
  'resize',
  'upgrade',
  'backup',
  'restore',
  'verify',
] as const
/** What was asked of a tenant. */
export type OperationKind = (typeof operationKinds)[number]

/** One thing that was asked of a tenant, and how far it is. */
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
/** What a secret of a tenant is for. Several of one kind are live while it is rotated. */
export type SecretKind = (typeof secretKinds)[number]

/** Kinds of operations that do not change what should be, and so don't stand for a generation. */
export const alongsideGenerations = ['backup', 'verify'] as const
