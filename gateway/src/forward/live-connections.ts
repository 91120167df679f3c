// Connections that stay open (upgrades, event streams, SQL sessions), by tenant: they end when the tenant is suspended
// or gone, and with the gateway.

export class LiveConnections {
  readonly #tenants = new Map<string, Set<() => void>>()

  /** @returns to be called when the connection has ended by itself */
  add(tenantId: string, end: () => void): () => void {
    let ends = this.#tenants.get(tenantId)
    if (ends === undefined) {
      ends = new Set()
      this.#tenants.set(tenantId, ends)
    }
    const those = ends
    those.add(end)
    return () => {
      those.delete(end)
      if (those.size === 0 && this.#tenants.get(tenantId) === those) this.#tenants.delete(tenantId)
    }
  }

  endOf(tenantId: string): void {
    for (const end of [...(this.#tenants.get(tenantId) ?? [])]) end()
  }

  endAll(): void {
    for (const tenantId of [...this.#tenants.keys()]) this.endOf(tenantId)
  }
}
