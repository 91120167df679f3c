// What one reconciliation sees of a tenant's parts, whether or not it gets to its end.
import type { Clock } from '../platform/clock.ts'
import type { Condition } from '../tenants/index.ts'
import { failedBy, observed, type Part, type Reported, type Seen } from './conditions.ts'

export class Observations {
  readonly #clock: Pick<Clock, 'now'>
  readonly #seen = new Map<Part, Condition>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  get seen(): Seen {
    return this.#seen
  }

  note(part: Part, reported: Reported): void {
    this.#seen.set(part, { type: part, ...reported, observed_at: this.#clock.now().toISOString() })
  }

  /** Notes that the part is as it was asked for once the work is done, or why it is not. @throws what the work throws */
  async of<T>(part: Part, work: () => Promise<T>): Promise<T> {
    const result = await this.failureOf(part, work)
    this.note(part, observed)
    return result
  }

  /** Notes a failure alone: the work does not show that the part is well when it succeeds. @throws what the work throws */
  async failureOf<T>(part: Part, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.note(part, failedBy(error))
      throw error
    }
  }
}
