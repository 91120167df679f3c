// Long-lived connections (upgrades, event streams, SQL sessions) by tenant. They end when the tenant is suspended or
// deleted, and with the gateway.

/** The number of connections that a stop ends at once. */
const endedAtOnce = 50
/**
 * Milliseconds for which upgraded connections of a tenant that is no longer served continue, so that its runtime can end them
 * with the reason.
 */
const reasonMs = 3_000

interface LiveConnection {
  end: () => void
  /** Whether the runtime ends the connection with a reason that the client can read. */
  hasReason: boolean
}

export class LiveConnections {
  readonly #tenants = new Map<string, Set<LiveConnection>>()
  readonly #isServed: (tenantId: string) => boolean

  /** @param isServed whether the gateway accepts requests of a tenant now */
  constructor(isServed: (tenantId: string) => boolean) {
    this.#isServed = isServed
  }

  /**
   * Registers a connection. It ends if the tenant is no longer served since its request arrived.
   * @returns a function to call when the connection has ended by itself
   */
  add(tenantId: string, end: () => void, { hasReason = false } = {}): () => void {
    let connections = this.#tenants.get(tenantId)
    if (connections === undefined) {
      connections = new Set()
      this.#tenants.set(tenantId, connections)
    }
    const ofTenant = connections
    const connection = { end, hasReason }
    ofTenant.add(connection)
    if (!this.#isServed(tenantId)) this.#endLater(tenantId, [connection], hasReason ? reasonMs : 0)
    return () => {
      ofTenant.delete(connection)
      if (ofTenant.size === 0 && this.#tenants.get(tenantId) === ofTenant) this.#tenants.delete(tenantId)
    }
  }

  endOf(tenantId: string): void {
    for (const { end } of [...(this.#tenants.get(tenantId) ?? [])]) end()
  }

  /**
   * Ends the connections of a tenant that is no longer served, and those that its runtime ends when it had time for that. Those
   * that remain continue if the tenant is served again by then.
   */
  endUnserved(tenantId: string): void {
    const connections = [...(this.#tenants.get(tenantId) ?? [])]
    for (const { end, hasReason } of connections) if (!hasReason) end()
    this.#endLater(tenantId, connections, reasonMs)
  }

  #endLater(tenantId: string, connections: readonly LiveConnection[], milliseconds: number): void {
    if (connections.length === 0) return
    const endOpen = () => {
      if (this.#isServed(tenantId)) return
      for (const connection of connections) if (this.#tenants.get(tenantId)?.has(connection) === true) connection.end()
    }
    setTimeout(endOpen, milliseconds).unref()
  }

  /** Ends all connections, in groups over some time, so that their clients do not come back all at once. */
  endAll(milliseconds: number): void {
    const ends = [...this.#tenants.values()].flatMap((connections) => [...connections].map(({ end }) => end))
    const groups = Math.ceil(ends.length / endedAtOnce)
    for (let group = 0; group < groups; group++) {
      const endGroup = () => {
        for (const end of ends.slice(group * endedAtOnce, (group + 1) * endedAtOnce)) end()
      }
      if (group === 0) endGroup()
      else setTimeout(endGroup, (milliseconds * group) / groups)
    }
  }
}
