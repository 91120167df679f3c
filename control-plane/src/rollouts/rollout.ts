// A change of image, tenant by tenant: in waves, watched, and taken back at the first tenant that is not well.
import type { Desired, OperationKind, Status } from '../tenants/index.ts'
import type { Isolation } from '../stacks/index.ts'

export const rolloutComponents = ['runtime', 'postgres'] as const
export type RolloutComponent = (typeof rolloutComponents)[number]

export const rolloutStates = ['running', 'rolling_back', 'succeeded', 'rolled_back', 'failed'] as const
export type RolloutState = (typeof rolloutStates)[number]

/** A tenant that the rollout has come to. */
export interface MovedTenant {
  tenantId: string
  /** Digest that it had before. */
  from: string
  /** 1 is the first wave; 0: it does not run, or not well, and nobody waits for it. */
  wave: number
  /** `moving` and `returning` until it was seen well; `lost`: it did not come back well. */
  state: 'moving' | 'moved' | 'returning' | 'returned' | 'lost' | 'gone'
  /** Generation of the tenant with the change. */
  generation: number
  /** When the last change was asked for. */
  movedAt: Date
  /** Since then it was well at every look. */
  wellSince: Date | undefined
}

export interface NewRollout {
  region: string
  component: RolloutComponent
  /** As it was asked for. */
  image: string
  /** Digest that it means. */
  imageId: string
  canary: string | undefined
  waveSize: number
  soakSeconds: number
  deadlineSeconds: number
}

export interface Rollout extends NewRollout {
  id: string
  state: RolloutState
  /** Waves that were begun. */
  wave: number
  tenants: MovedTenant[]
  error: string | undefined
  createdAt: Date
  finishedAt: Date | undefined
}

/** A tenant with services of its own, as a rollout looks at it. */
export interface RolloutSubject {
  id: string
  isolation: Isolation
  desired: Desired
  status: Status
  generation: number
  observedGeneration: number
  /** Digest of the component's image; undefined before its services are first made. */
  image: string | undefined
  /** What is under way. */
  operations: readonly OperationKind[]
}
