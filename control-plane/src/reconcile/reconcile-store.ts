// What the reconciler reads and writes of the control database. Every write carries the epoch of the leader that makes
// it, and is refused when another has taken the lead since.
import type { Condition, Desired, Isolation, SecretKind, Status } from '../tenants/tenant.ts'

/** Everything that one reconciliation looks at, read at one instant. */
export interface Snapshot {
  id: string
  name: string
  regionId: string
  isolation: Isolation
  desired: Desired
  status: Status
  generation: number
  observedGeneration: number
  conditions: Condition[]
  homeVersion: string | undefined
  routePhase: string
  purgeAfter: Date | undefined
  /** Name of the shared database. */
  database: string
  /** Live secrets, newest first. */
  secrets: Record<SecretKind, string[]>
  /** When the next of the rotated secrets expires. */
  nextExpiry: Date | undefined
  /** The operation that this reconciliation carries out, if one is open. */
  operation: { id: string; attempts: number } | undefined
}

export type RoutePhase = 'pending' | 'ready' | 'suspended' | 'deleted'

/** Thrown by writes when this control plane no longer leads. */
export class LeadershipLost extends Error {}

export interface ReconcileStore {
  snapshot(tenantId: string): Promise<Snapshot | undefined>
  /** Ids of tenants whose observed state may differ from the wanted one, or that have something due. */
  unsettled(homeVersion: string): Promise<string[]>
  beginOperation(operationId: string, epoch: bigint): Promise<void>
  /** Home made (or, null, about to be destroyed) and route published: watches are told. */
  recordPublished(tenantId: string, change: { homeVersion: string | null; routePhase: RoutePhase }, epoch: bigint): Promise<void>
  /** Writes status and conditions; ends the operation, or says why it has not ended yet. */
  recordObserved(
    tenantId: string,
    observed: { generation: number; status: Status; reason: string | null; conditions: Condition[]; operation: { id: string; error: string | null } | undefined },
    epoch: bigint,
  ): Promise<void>
  /** The tenant is gone: secrets and row last, in one transaction with the end of its operation. */
  removeTenant(tenantId: string, epoch: bigint): Promise<void>
}
