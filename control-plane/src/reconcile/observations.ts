// What one reconciliation sees of a tenant's parts, whether or not it gets to its end.
import type { Clock } from '../platform/clock.ts'
import type { Condition } from '../tenants/index.ts'
import { failedBy, observed, type Part, type Said, type Seen } from './conditions.ts'

export class Observations {
  readonly #clock: Pick<Clock, 'now'>
  readonly #seen = new Map<Part, Condition>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  get seen(): Seen {
    return this.#seen
  }

  note(part: Part, said: Said): void {
    this.#seen.set(part, { type: part, ...said, observed_at: this.#clock.now().toISOString() })
  }

  /** Notes the part as well once the work is done, or why it is not. @throws what the work throws */
  async of<T>(part: Part, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      this.note(part, observed)
      return result
    } catch (error) {
      this.note(part, failedBy(error))
      throw error
    }
  }
}
