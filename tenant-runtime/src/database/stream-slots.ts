// Limits how many long responses are read at once, because each holds a connection for as long as its reader needs.
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

  /**
   * Takes a slot.
   * @returns a function that releases it, idempotent
   * @throws RuntimeError DATABASE_BUSY
   */
  take(tenantId: string): () => void {
    const taken = this.#taken.get(tenantId) ?? 0
    if (taken >= this.#limits.perTenant || this.#total >= this.#limits.total) {
      throw new RuntimeError(
        'DATABASE_BUSY',
        'Too many long responses are being read. Retry the request, or request fewer records.',
      )
    }
    this.#taken.set(tenantId, taken + 1)
    this.#total++
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.#total--
      const remaining = (this.#taken.get(tenantId) ?? 1) - 1
      if (remaining === 0) this.#taken.delete(tenantId)
      else this.#taken.set(tenantId, remaining)
    }
  }
}
