// What the reconciler reads and writes of the control database. Every write carries the epoch of the leader that makes
// it, and is refused when another has taken the lead since.
import type { RoutePhase } from '@tenantry/contract'
import type { ComponentSizes, Condition, Desired, DriftPolicy, SecretKind, Status } from '../tenants/index.ts'
import type { Isolation } from '../stacks/index.ts'

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
  /** Why it is not as it was asked for, as was recorded last; null when it was seen to be. */
  reason: string | null
  conditions: Condition[]
  homeVersion: string | undefined
  routePhase: RoutePhase
  purgeAfter: Date | undefined
  /** Name of the shared database; undefined for a tenant with one of its own. */
  database: string | undefined
  driftPolicy: DriftPolicy
  sizes: ComponentSizes
  restarts: number
  /** Digests; undefined before its services are first made. */
  images: { postgres: string; runtime: string } | undefined
  /** Number of its subnet in the region's range. */
  subnet: number | undefined
  /** Live secrets, newest first. */
  secrets: Record<SecretKind, string[]>
  /** When the next of the rotated secrets expires. */
  nextExpiry: Date | undefined
  /** Some have, and are still kept. */
  hasExpired: boolean
  /** The operation that this reconciliation carries out, if one is open. */
  operation: { id: string; attempts: number } | undefined
}

/**
 * The reconciler's part of the control database. Calls with an `epoch` throw LeadershipLost once another control plane
 * leads.
 */
export interface ReconcileStore {
  /** Reads one tenant at one instant; undefined when there is no such tenant any more. */
  snapshot(tenantId: string): Promise<Snapshot | undefined>
  /** Ids of tenants whose observed state may differ from the wanted one, or that have something due. */
  unsettled(homeVersion: string): Promise<string[]>
  /** Tenants with services of their own that were last seen as wanted, and for which nothing is under way. */
  settledDedicated(regionId: string): Promise<Snapshot[]>
  /** Whether the region's shared Postgres may hold homes. */
  hasHomes(regionId: string): Promise<boolean>
  /** Of all tenants, warm ones too, and of scratch homes in use: what of theirs may exist. */
  tenantIds(): Promise<Set<string>>
  /** Writes nothing; asked before anything is changed on an engine, which knows of no epochs. @throws LeadershipLost */
  confirmLead(epoch: bigint): Promise<void>
  /** Marks an operation as running and counts the attempt. */
  beginOperation(operationId: string, epoch: bigint): Promise<void>
  /** Records what an operation is doing now, for its readers. */
  recordStep(operationId: string, step: string, epoch: bigint): Promise<void>
  /** Digests of the images that the tenant's services run from now on; those it has already stay. */
  pinImages(tenantId: string, images: { postgres: string; runtime: string }, epoch: bigint): Promise<void>
  /**
   * The tenant's number of the region's subnets: the one it has, or the first free one.
   * @param except numbers that somebody has on the engine
   * @returns undefined when all `count` are taken
   */
  allocateSubnet(
    tenantId: string,
    regionId: string,
    count: number,
    epoch: bigint,
    except?: readonly number[],
  ): Promise<number | undefined>
  /**
   * Takes the tenant from a number to the next free one; one that has another by now keeps that.
   * @param except numbers that somebody has on the engine
   * @returns its number, or undefined when none is free
   * @throws Error when another tenant took that number at the same time
   */
  moveSubnet(
    tenantId: string,
    from: number,
    regionId: string,
    count: number,
    epoch: bigint,
    except: readonly number[],
  ): Promise<number | undefined>
  /** Those of the tenants that were deleted to the end, and scratch homes that are done with: what is left of them may go. */
  deletedTenants(tenantIds: readonly string[]): Promise<Set<string>>
  /** A stack of a tenant that is long gone has been removed. */
  freeSubnet(stackId: string, epoch: bigint): Promise<void>
  /** Home made (or, null, about to be destroyed) and route published: watches are told. */
  recordPublished(
    tenantId: string,
    change: { homeVersion: string | null; routePhase: RoutePhase },
    epoch: bigint,
  ): Promise<void>
  /** IDs of active tenants that are ready, settled, and of which nothing is said. */
  readyTenants(): Promise<string[]>
  /** Writes a `Loss`, which stays with the tenant whatever is observed later, and the event `tenant.repaired`. */
  recordLoss(tenantId: string, condition: Condition, epoch: bigint): Promise<void>
  /** Writes status and conditions; ends the operation, or says why it has not ended yet. */
  recordObserved(
    tenantId: string,
    observed: {
      generation: number
      status: Status
      reason: string | null
      conditions: Condition[]
      operation: { id: string; error: string | null } | undefined
    },
    epoch: bigint,
  ): Promise<void>
  /** The tenant is gone: subnet, secrets and row last, in one transaction with the end of its operation. */
  removeTenant(tenantId: string, epoch: bigint): Promise<void>
}
