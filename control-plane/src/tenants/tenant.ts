// A tenant and its operations, as the control plane knows them.

export type Isolation = 'schema-per-tenant' | 'database-per-tenant' | 'cluster-per-tenant'

export type Desired = 'active' | 'suspended' | 'deleted'

export type Status = 'pending' | 'ready' | 'suspended' | 'deleting' | 'failed'

/** Something observed of a tenant, and when. */
export interface Condition {
  type: 'Home' | 'Database' | 'Runtime' | 'Route'
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  /** ISO 8601, UTC. */
  observed_at: string
}

export interface Tenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
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
}

export type OperationKind = 'create' | 'update' | 'delete' | 'rotate_keys'

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
  'runtime_password', 'ddl_password', 'admin_password', 'jwt_secret', 'signing_secret', 'publishable_key', 'secret_key',
] as const
export type SecretKind = (typeof secretKinds)[number]
