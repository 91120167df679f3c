// The observations that one reconciliation makes of a tenant's parts, also if it fails.
import type { Clock } from '../platform/clock.ts'
import type { Condition } from '../tenants/index.ts'
import { failedBy, observed, type Part, type ConditionState, type ObservedParts } from './conditions.ts'

export class Observations {
  readonly #clock: Pick<Clock, 'now'>
  readonly #seen = new Map<Part, Condition>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  get seen(): ObservedParts {
    return this.#seen
  }

  note(part: Part, state: ConditionState): void {
    this.#seen.set(part, { type: part, ...state, observed_at: this.#clock.now().toISOString() })
  }

  /** Runs work, and notes the part as observed or its failure. @throws the error of the work */
  async observe<T>(part: Part, work: () => Promise<T>): Promise<T> {
    const result = await this.observeFailure(part, work)
    this.note(part, observed)
    return result
  }

  /**
   * Runs work and notes only its failure, because its success does not show that the part is healthy. @throws the error
   * of the work
   */
  async observeFailure<T>(part: Part, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.note(part, failedBy(error))
      throw error
    }
  }
}
