// The waiters of one tenant, in their order. Nearly all tenants have none, and then the queue needs no memory of its own.

/** A request that waits. One of the three functions is called, once, unless the request leaves before. */
export interface Waiter {
  go(): void
  exhausted(): void
  /** Called when the control plane did not respond in time. */
  unknown(): void
}

export class WaiterQueue implements Iterable<Waiter> {
  #waiters: Set<Waiter> | undefined

  get size(): number {
    return this.#waiters?.size ?? 0
  }

  add(waiter: Waiter): void {
    this.#waiters ??= new Set()
    this.#waiters.add(waiter)
  }

  /** @returns whether the waiter was in the queue */
  delete(waiter: Waiter): boolean {
    const wasPresent = this.#waiters?.delete(waiter) ?? false
    if (this.#waiters?.size === 0) this.#waiters = undefined
    return wasPresent
  }

  clear(): void {
    this.#waiters = undefined
  }

  [Symbol.iterator](): Iterator<Waiter> {
    return (this.#waiters ?? none).values()
  }
}

const none: ReadonlySet<Waiter> = new Set()
