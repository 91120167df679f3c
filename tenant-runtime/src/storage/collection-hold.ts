// Holds the removal of old blobs of a tenant for a time: while a backup is taken, every blob that its database refers to
// must stay, even when it is let go of meanwhile. A hold that is not renewed ends by itself.

export class CollectionHold {
  readonly #now: () => number
  /** Tenant → until when, in milliseconds. */
  readonly #until = new Map<string, number>()
  readonly #removals = new Map<string, Set<Promise<void>>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** From the moment this returns nothing is removed. `seconds` from now; a hold that lasts longer already stays. */
  async hold(tenantId: string, seconds: number): Promise<void> {
    this.#until.set(tenantId, Math.max(this.#until.get(tenantId) ?? 0, this.#now() + seconds * 1000))
    await Promise.allSettled([...(this.#removals.get(tenantId) ?? [])])
  }

  release(tenantId: string): void {
    this.#until.delete(tenantId)
  }

  /** @returns false when the tenant is held: nothing was done then */
  async unlessHeld(tenantId: string, removal: () => Promise<void>): Promise<boolean> {
    if ((this.#until.get(tenantId) ?? 0) > this.#now()) return false
    const under = this.#removals.get(tenantId) ?? new Set()
    this.#removals.set(tenantId, under)
    const removing = removal()
    under.add(removing)
    try {
      await removing
    } finally {
      under.delete(removing)
      if (under.size === 0) this.#removals.delete(tenantId)
    }
    return true
  }
}
