// The store of rollouts: the API's interface, and the interface of the leader that carries them out.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { NewRollout, Rollout, RolloutSubject } from './rollout.ts'
import type { RolloutStep } from './rollout-plan.ts'

/** The API's interface of the store of rollouts. */
export interface RolloutStore {
  /**
   * Creates a rollout. @throws ControlError ROLLOUT_IN_PROGRESS, INVALID_FIELD for a canary without services in the
   * region
   */
  create(rollout: NewRollout, write: RecordedWrite): Promise<Rollout>
  get(id: string): Promise<Rollout | undefined>
  /** Lists rollouts, the oldest first. */
  list(filter: { region?: string }, page: PageRequest): Promise<Page<Rollout>>
  /**
   * Cancels a rollout. Each of its tenants gets its former image back. @throws ControlError ROLLOUT_NOT_FOUND,
   * ROLLOUT_FINISHED
   */
  cancel(id: string, write: RecordedWrite): Promise<Rollout>
}

/**
 * The leader's interface of the store of rollouts. Every write is one transaction under the leader's epoch. @throws
 * LeadershipLost
 */
export interface RolloutLedger {
  /** Returns the rollouts that have not ended. */
  open(): Promise<Rollout[]>
  /**
   * Returns the tenants of a rollout's region with services of their own, the oldest first, without those that are warm
   * or being deleted.
   */
  subjects(rollout: Rollout): Promise<RolloutSubject[]>
  /**
   * Takes a step. It checks the step's tenants again and leaves out those that have changed.
   * @param rollout state in which the step was planned
   * @returns the rollout after the step; undefined if its state had changed
   */
  take(rollout: Rollout, step: Exclude<RolloutStep, { do: 'wait' }>, epoch: bigint): Promise<Rollout | undefined>
}
