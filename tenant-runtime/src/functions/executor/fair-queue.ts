// A fair queue: tenants take turns, and within a tenant its functions do, so that one busy function does not delay others.

export class FairQueue<T> {
  /** Tenant → function → waiting items. The first of each map is the next. */
  readonly #tenants = new Map<string, Map<string, T[]>>()

  length(tenant: string, fn: string): number {
    return this.#tenants.get(tenant)?.get(fn)?.length ?? 0
  }

  add(tenant: string, fn: string, item: T): void {
    let functions = this.#tenants.get(tenant)
    if (functions === undefined) this.#tenants.set(tenant, (functions = new Map<string, T[]>()))
    const items = functions.get(fn)
    if (items === undefined) functions.set(fn, [item])
    else items.push(item)
  }

  /** Takes the next item of a tenant that `mayRun`. The tenant and the function move to the end of their queues. */
  take(mayRun: (tenant: string) => boolean): { tenant: string; item: T } | undefined {
    for (const [tenant, functions] of this.#tenants) {
      if (!mayRun(tenant)) continue
      for (const [fn, items] of functions) {
        const item = items.shift()
        functions.delete(fn)
        if (items.length > 0) functions.set(fn, items)
        this.#tenants.delete(tenant)
        if (functions.size > 0) this.#tenants.set(tenant, functions)
        if (item !== undefined) return { tenant, item }
      }
    }
    return undefined
  }
}
