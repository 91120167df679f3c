// Deletes old rows of tenants' homes, at most once an hour for each tenant.
import type { Tenant } from './tenant.ts'

/** Milliseconds between two polls of a tenant. */
const pollIntervalMs = 3_600_000

export interface HourlyRetentionOptions {
  /** The rows that are deleted, for errors: `Old events`. */
  what: string
  /** Deletes the old rows of a tenant. */
  trim: (tenant: Tenant) => Promise<unknown>
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onError: (error: Error) => void
}

export class HourlyRetention {
  readonly #options: HourlyRetentionOptions
  /** The time of the last poll of each tenant. */
  readonly #polledAt = new Map<string, number>()
  readonly #polling = new Set<Promise<void>>()

  constructor(options: HourlyRetentionOptions) {
    this.#options = options
  }

  /** Deletes old rows of a tenant that was not polled for an hour. Called regularly. Never throws. */
  poll(tenant: Tenant): void {
    const { what, trim, elapsed, onError } = this.#options
    const now = elapsed()
    if (now - (this.#polledAt.get(tenant.id) ?? -Infinity) < pollIntervalMs) return
    this.#polledAt.set(tenant.id, now)
    const polling = trim(tenant)
      .then(
        () => undefined,
        (cause: unknown) => onError(new Error(`${what} of the tenant ${tenant.id} could not be deleted.`, { cause })),
      )
      .finally(() => this.#polling.delete(polling))
    this.#polling.add(polling)
  }

  /** Waits until every poll that has begun is over. */
  async idle(): Promise<void> {
    await Promise.all(this.#polling)
  }

  evict(tenantId: string): void {
    this.#polledAt.delete(tenantId)
  }
}
