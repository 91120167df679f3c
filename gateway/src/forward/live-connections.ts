// Long-lived connections (upgrades, event streams, SQL sessions) by tenant. They end when the tenant is suspended or
// deleted, and with the gateway.

export class LiveConnections {
  readonly #tenants = new Map<string, Set<() => void>>()

  /**
   * Registers a connection.
   * @returns a function to call when the connection has ended by itself
   */
  add(tenantId: string, end: () => void): () => void {
    let ends = this.#tenants.get(tenantId)
    if (ends === undefined) {
      ends = new Set()
      this.#tenants.set(tenantId, ends)
    }
    const tenantEnds = ends
    tenantEnds.add(end)
    return () => {
      tenantEnds.delete(end)
      if (tenantEnds.size === 0 && this.#tenants.get(tenantId) === tenantEnds) this.#tenants.delete(tenantId)
    }
  }

  endOf(tenantId: string): void {
    for (const end of [...(this.#tenants.get(tenantId) ?? [])]) end()
  }

  endAll(): void {
    for (const tenantId of [...this.#tenants.keys()]) this.endOf(tenantId)
  }
}
