// Where rollouts are kept: what the API asks of it, and what the leader that carries them out does.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { NewRollout, Rollout, RolloutSubject } from './rollout.ts'
import type { RolloutStep } from './rollout-plan.ts'

export interface RolloutStore {
  /** @throws ControlError ROLLOUT_UNDER_WAY, INVALID_FIELD for a canary that has no services in the region */
  create(rollout: NewRollout, write: RecordedWrite): Promise<Rollout>
  get(id: string): Promise<Rollout | undefined>
  /** Oldest first. */
  list(filter: { region?: string }, page: PageRequest): Promise<Page<Rollout>>
  /** Every tenant that it has come to gets its former image back. @throws ControlError ROLLOUT_NOT_FOUND, ROLLOUT_FINISHED */
  cancel(id: string, write: RecordedWrite): Promise<Rollout>
}

/** Every write is one transaction under the leader's epoch. @throws LeadershipLost */
export interface RolloutLedger {
  /** Those that have not ended. */
  open(): Promise<Rollout[]>
  /** Of the rollout's region, oldest first: with services of their own, neither made in advance nor being deleted. */
  subjects(rollout: Rollout): Promise<RolloutSubject[]>
  /**
   * Takes the step: the tenants it is about are looked at once more, and those that have changed are left out.
   * @param rollout as it was when the step was decided on @returns the rollout after it; undefined when it was not so any more
   */
  take(rollout: Rollout, step: Exclude<RolloutStep, { do: 'wait' }>, epoch: bigint): Promise<Rollout | undefined>
}
