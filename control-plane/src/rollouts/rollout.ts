// A rollout changes an image, tenant by tenant: in observed waves, and back at the first unhealthy tenant.
import type { Desired, OperationKind, Status } from '../tenants/index.ts'
import type { Isolation } from '../stacks/index.ts'

export const rolloutComponents = ['runtime', 'postgres', 'cluster-member'] as const
/** A component of tenants' own services, as the images' label names it. */
export type RolloutComponent = (typeof rolloutComponents)[number]

/** The isolation models whose tenants have the component. */
export const isolationsWith: Record<RolloutComponent, readonly Isolation[]> = {
  runtime: ['database-per-tenant', 'cluster-per-tenant'],
  postgres: ['database-per-tenant'],
  'cluster-member': ['cluster-per-tenant'],
}

export const rolloutStates = ['running', 'rolling_back', 'succeeded', 'rolled_back', 'failed'] as const
export type RolloutState = (typeof rolloutStates)[number]

/** A tenant that the rollout has moved. */
export interface MovedTenant {
  tenantId: string
  /** Digest of the former image. */
  from: string
  /**
   * Wave of the tenant. 1 is the first; 0 is for a tenant that is stopped or unhealthy, for which the rollout does not
   * wait.
   */
  wave: number
  /**
   * State of the move. `moving` and `returning` last until the tenant is healthy; a `lost` tenant did not become
   * healthy again.
   */
  state: 'moving' | 'moved' | 'returning' | 'returned' | 'lost' | 'gone'
  /** Generation of the tenant with the change. */
  generation: number
  /** Time of the last change. */
  movedAt: Date
  /** Time since which every poll has found the tenant healthy. */
  wellSince: Date | undefined
}

export interface NewRollout {
  region: string
  component: RolloutComponent
  /** Image as the operator named it. */
  image: string
  /** Digest of the image. */
  imageId: string
  canary: string | undefined
  waveSize: number
  soakSeconds: number
  deadlineSeconds: number
}

export interface Rollout extends NewRollout {
  id: string
  state: RolloutState
  /** Number of waves that have begun. */
  wave: number
  tenants: MovedTenant[]
  error: string | undefined
  createdAt: Date
  finishedAt: Date | undefined
}

/** A tenant with services of its own, for a rollout. */
export interface RolloutSubject {
  id: string
  isolation: Isolation
  desired: Desired
  status: Status
  generation: number
  observedGeneration: number
  /** Digest of the component's image; undefined before its services are first created. */
  image: string | undefined
  /** Kinds of its operations in progress. */
  operations: readonly OperationKind[]
}
