// Suspends the removal of a tenant's old blobs for a time. While a backup is taken, every blob that its database refers to
// must stay, even if an object is deleted meanwhile. A hold that is not renewed expires.

export class CollectionHold {
  readonly #now: () => number
  /** Tenant → end of its hold, in milliseconds. */
  readonly #until = new Map<string, number>()
  readonly #removals = new Map<string, Set<Promise<void>>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Suspends removals for `seconds` from now. When it returns, none is running. A hold that ends later is not shortened. */
  async hold(tenantId: string, seconds: number): Promise<void> {
    this.#until.set(tenantId, Math.max(this.#until.get(tenantId) ?? 0, this.#now() + seconds * 1000))
    await Promise.allSettled([...(this.#removals.get(tenantId) ?? [])])
  }

  release(tenantId: string): void {
    this.#until.delete(tenantId)
  }

  /** Runs a removal unless the tenant is held. @returns false if it is held */
  async unlessHeld(tenantId: string, removal: () => Promise<void>): Promise<boolean> {
    if ((this.#until.get(tenantId) ?? 0) > this.#now()) return false
    const running = this.#removals.get(tenantId) ?? new Set()
    this.#removals.set(tenantId, running)
    const removing = removal()
    running.add(removing)
    try {
      await removing
    } finally {
      running.delete(removing)
      if (running.size === 0) this.#removals.delete(tenantId)
    }
    return true
  }
}
