// A fair queue: tenants take turns, and within a tenant its functions do, so that one busy function does not delay others.

interface Waiting<T> {
  item: T
  since: number
}

export class FairQueue<T> {
  /** Tenant → function → waiting items. The first of each map is the next. */
  readonly #tenants = new Map<string, Map<string, Waiting<T>[]>>()

  get isEmpty(): boolean {
    return this.#tenants.size === 0
  }

  /** Returns the number of waiting items of a tenant, or of one of its functions. */
  length(tenant: string, fn?: string): number {
    const functions = this.#tenants.get(tenant)
    if (functions === undefined) return 0
    if (fn !== undefined) return functions.get(fn)?.length ?? 0
    let sum = 0
    for (const items of functions.values()) sum += items.length
    return sum
  }

  add(tenant: string, fn: string, item: T, since: number): void {
    let functions = this.#tenants.get(tenant)
    if (functions === undefined) this.#tenants.set(tenant, (functions = new Map<string, Waiting<T>[]>()))
    const items = functions.get(fn)
    if (items === undefined) functions.set(fn, [{ item, since }])
    else items.push({ item, since })
  }

  /** Removes an item whose caller no longer waits. It does nothing if the item was taken. */
  remove(tenant: string, fn: string, item: T): void {
    const functions = this.#tenants.get(tenant)
    const items = functions?.get(fn) ?? []
    const index = items.findIndex((waiting) => waiting.item === item)
    if (index < 0) return
    items.splice(index, 1)
    if (items.length === 0) functions?.delete(fn)
    if (functions?.size === 0) this.#tenants.delete(tenant)
  }

  /** Takes the next item of a tenant that `mayRun`. The tenant and the function move to the end of their queues. */
  take(mayRun: (tenant: string) => boolean): { tenant: string; item: T } | undefined {
    for (const [tenant, functions] of this.#tenants) {
      if (!mayRun(tenant)) continue
      for (const [fn, items] of functions) {
        const waiting = items.shift()
        functions.delete(fn)
        if (items.length > 0) functions.set(fn, items)
        this.#tenants.delete(tenant)
        if (functions.size > 0) this.#tenants.set(tenant, functions)
        if (waiting !== undefined) return { tenant, item: waiting.item }
      }
    }
    return undefined
  }

  /** Returns the tenants with an item that waits since `before` or earlier. */
  *waitingSince(before: number): Generator<string> {
    for (const [tenant, functions] of this.#tenants) {
      for (const [first] of functions.values()) {
        if (first === undefined || first.since > before) continue
        yield tenant
        break
      }
    }
  }
}
