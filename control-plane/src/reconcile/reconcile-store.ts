// The reconciler's interface of the control database. Every write carries the leader's epoch and is rejected if another
// control plane has led since.
import type { RoutePhase } from '@tenantry/contract'
import type {
  ComponentSizes,
  Condition,
  Desired,
  DriftPolicy,
  SecretKind,
  Status,
  DriftRepair,
  Switchover,
} from '../tenants/index.ts'
import type { PlacementStore, Reserved } from '../placement/index.ts'
import type { Isolation, MovingServices, Placement } from '../stacks/index.ts'

/** All data that one reconciliation needs, read at one instant. */
export interface Snapshot {
  id: string
  name: string
  regionId: string
  isolation: Isolation
  desired: Desired
  status: Status
  generation: number
  observedGeneration: number
  /** Recorded reason why the tenant is not as specified; null if it was observed as specified. */
  reason: string | null
  conditions: Condition[]
  homeVersion: string | undefined
  routePhase: RoutePhase
  /** Whether the SQL login stays closed while the tenant is active, because of what its sessions did. */
  isSqlClosed: boolean
  purgeAfter: Date | undefined
  /** Name of the shared database; undefined for a tenant with one of its own. */
  database: string | undefined
  driftPolicy: DriftPolicy
  sizes: ComponentSizes
  restarts: number
  /** Whether the WAL of its own Postgres is archived. */
  isArchived: boolean
  /** Digests of the images; undefined before its services are first created. */
  images: { postgres: string; runtime: string } | undefined
  /** Services of another model that the tenant has as well, during a move; absent: none. */
  moving?: MovingServices
  /** Number of its subnet in the region's range. */
  subnet: number | undefined
  /** Hosts of its services, in a region with several hosts. */
  placement: Placement
  /** Whether a restore has chosen another host for its services, and has not succeeded yet; absent: none has. */
  isReplaced?: boolean
  /** Memory that its services reserve on their hosts. */
  reserved: Reserved
  /** Whether no host has the memory for the tenant's sizes, so that `sizes` are those for which it is reserved; absent: it is. */
  lacksMemory?: boolean
  /** Whether the password of `database_url` in the home is not the stored one yet. */
  databasePasswordDue: boolean
  /** Whether the services' logins may still have older passwords than the newest, which are stored until then. */
  servicePasswordsDue: boolean
  /** Live secrets, newest first. */
  secrets: Record<SecretKind, string[]>
  /** Time at which the next rotated secret expires. */
  nextExpiry: Date | undefined
  /** Whether a secret has expired that is still stored. */
  hasExpired: boolean
  /** Whether a move changes services or holds requests, so that nothing else may change the services, the home or the route. */
  isHeld: boolean
  /** The operation that this reconciliation carries out, if one is open. */
  operation: { id: string; attempts: number; switchover?: Switchover; repair?: DriftRepair } | undefined
}

/** Whether an open operation is a move that holds the tenant's requests, or that starts or removes services of the tenant. */
export function isHeldBy(operation: { kind: string; step: string | null } | null, moving?: MovingServices): boolean {
  const step = operation?.kind === 'move' ? operation.step : null
  if (step === 'hold' || step === 'switch') return true
  return moving !== undefined && (step === 'prepare' || moving.isEnding === true)
}

/**
 * The version of a home that was not observed since the control database was restored on another host, where it may be gone.
 */
export const unobservedHome = ''

/** A tenant that is ready. */
export type ReadyTenant = Pick<Snapshot, 'id' | 'regionId' | 'isolation'>

/**
 * The reconciler's part of the control database. Calls with an `epoch` throw LeadershipLost once another control plane
 * leads.
 */
export interface ReconcileStore {
  /** The hosts of tenants' services, in regions with several hosts. */
  placements: PlacementStore
  /** Reads one tenant at one instant; undefined if the tenant no longer exists. */
  snapshot(tenantId: string): Promise<Snapshot | undefined>
  /** Returns a tenant's region; undefined if the tenant no longer exists. */
  regionOf(tenantId: string): Promise<string | undefined>
  /** Returns the tenants whose observed state may differ from the specified one, or that have work due. */
  unsettled(homeVersion: string): Promise<Pick<Snapshot, 'id' | 'regionId'>[]>
  /**
   * Returns tenants with services of their own that were last observed as specified, without an operation in progress.
   */
  settledDedicated(regionId: string): Promise<Snapshot[]>
  /** Whether the region's shared Postgres holds homes. One that was not observed since a recovery does not count. */
  hasHomes(regionId: string): Promise<boolean>
  /** Whether the region's shared Postgres may hold homes: also those that were not observed since a recovery. */
  mayHoldHomes(regionId: string): Promise<boolean>
  /** Whether the region's etcd may hold the state of clusters. One that was not observed since a recovery does not count. */
  hasClusters(regionId: string): Promise<boolean>
  /** Returns the IDs of all tenants, warm ones included, and of scratch homes in use, whose objects may exist. */
  tenantIds(): Promise<Set<string>>
  /**
   * Checks the lead and writes nothing. It is called before a change on an engine, which has no epochs. @throws
   * LeadershipLost
   */
  confirmLead(epoch: bigint): Promise<void>
  /** Marks an operation as running and counts the attempt. */
  beginOperation(operationId: string, epoch: bigint): Promise<void>
  /** Records the current step of an operation, for its readers. */
  recordStep(operationId: string, step: string, epoch: bigint): Promise<void>
  /** Pins the digests of the images that the tenant's services run from now on. Digests that are already pinned stay. */
  pinImages(tenantId: string, images: { postgres: string; runtime: string }, epoch: bigint): Promise<void>
  /** Replaces the pinned digests of a tenant whose home was not observed since a recovery. */
  replaceImages(tenantId: string, images: { postgres: string; runtime: string }, epoch: bigint): Promise<void>
  /**
   * Returns the tenant's subnet number in the region: its current one, or the first free one.
   * @param except numbers that are in use on the engine
   * @returns undefined if all `count` are in use
   */
  allocateSubnet(
    tenantId: string,
    regionId: string,
    count: number,
    epoch: bigint,
    except?: readonly number[],
  ): Promise<number | undefined>
  /**
   * Moves the tenant from a subnet number to the next free one. A tenant that already has another number keeps that.
   * @param except numbers that are in use on the engine
   * @returns its number, or undefined if none is free
   * @throws Error if another tenant took that number at the same time
   */
  moveSubnet(
    tenantId: string,
    from: number,
    regionId: string,
    count: number,
    epoch: bigint,
    except: readonly number[],
  ): Promise<number | undefined>
  /**
   * Returns those of the tenants that were deleted completely, and scratch homes that are no longer used. Their
   * remaining objects may be removed.
   */
  deletedTenants(tenantIds: readonly string[]): Promise<Set<string>>
  /** Frees the subnet of a stack whose remaining objects were removed after its tenant was deleted. */
  freeSubnet(stackId: string, epoch: bigint): Promise<void>
  /**
   * Records the home as created (or, with null, about to be destroyed) and the route as published, and notifies
   * watches.
   */
  recordPublished(
    tenantId: string,
    change: { homeVersion: string | null; routePhase: RoutePhase },
    epoch: bigint,
  ): Promise<void>
  /** Records that the home has the password of `database_url` that this generation stores. */
  recordPasswordSet(tenantId: string, generation: number, epoch: bigint): Promise<void>
  /** Records that the services' logins have the passwords of this generation, removes the older ones and publishes the tenant. */
  recordServicePasswordsSet(tenantId: string, generation: number, epoch: bigint): Promise<void>
  /** Returns the active tenants of a region that are ready and settled, without a recorded reason. */
  readyTenants(regionId: string): Promise<ReadyTenant[]>
  /** Writes a `Loss`, which stays with the tenant whatever is observed later, and the event `tenant.repaired`. */
  recordLoss(tenantId: string, condition: Condition, epoch: bigint): Promise<void>
  /**
   * Writes status and conditions, and ends the operation or records why it has not ended yet. With `hasFailed`, it ends as
   * failed, with its error.
   */
  recordObserved(
    tenantId: string,
    observed: {
      generation: number
      status: Status
      reason: string | null
      conditions: Condition[]
      operation: { id: string; error: string | null; hasFailed?: boolean } | undefined
    },
    epoch: bigint,
  ): Promise<void>
  /**
   * Records that the data of a deleted tenant may be destroyed from now on, so that its deletion cannot be reverted.
   * @returns false if the tenant has changed since that generation; then nothing may be destroyed
   */
  beginPurge(tenantId: string, generation: number, epoch: bigint): Promise<boolean>
  /** Removes a tenant: subnet, secrets and finally its row, in one transaction with the end of its operation. */
  removeTenant(tenantId: string, epoch: bigint): Promise<void>
}
