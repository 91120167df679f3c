// How many long answers may be read at once: each holds a connection for as long as its reader takes.
import { RuntimeError } from '../errors.ts'

interface StreamLimits {
  total: number
  perTenant: number
}

export class StreamSlots {
  readonly #limits: StreamLimits
  readonly #taken = new Map<string, number>()
  #total = 0

  constructor(limits: StreamLimits) {
    this.#limits = limits
  }

  /** @returns what gives the place back; once is enough. @throws RuntimeError DATABASE_BUSY */
  take(tenantId: string): () => void {
    const taken = this.#taken.get(tenantId) ?? 0
    if (taken >= this.#limits.perTenant || this.#total >= this.#limits.total) {
      throw new RuntimeError(
        'DATABASE_BUSY',
        'too many long answers are being read; try again, or ask for fewer records',
      )
    }
    this.#taken.set(tenantId, taken + 1)
    this.#total++
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.#total--
      const left = (this.#taken.get(tenantId) ?? 1) - 1
      if (left === 0) this.#taken.delete(tenantId)
      else this.#taken.set(tenantId, left)
    }
  }
}
