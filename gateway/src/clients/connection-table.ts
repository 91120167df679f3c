// The open connections of the public server, with a share for each client address. When the table is full, it closes a
// connection of the address that holds most, so that one address cannot keep others from being served.
import type { ClientAddress, HeldConnection } from './client-address.ts'
import type { ClientAddresses } from './client-addresses.ts'

interface ConnectionTableLimits {
  /** The maximum number of open connections, and of one address. */
  connections: number
  connectionsPerAddress: number
  /** The number of connections that an address keeps when the table is full, even if a request is in progress on each. */
  connectionShare: number
  /** The maximum number of connections that have not sent a whole request head, and of one address. */
  heads: number
  headsPerAddress: number
  /** The milliseconds for which a connection may be without a whole request head in any case. */
  headGrace: number
}

interface ConnectionTableOptions {
  limits: ConnectionTableLimits
  addresses: ClientAddresses
  /** Returns monotonic milliseconds. */
  elapsed: () => number
}

/** `address`: the address has its maximum. `full`: the table is full. */
export type RejectionReason = 'address' | 'full'

/** The number of idle connections that are examined for one that has sent all of its responses. */
const maxIdleTries = 32

export class ConnectionTable {
  readonly #options: ConnectionTableOptions
  #size = 0
  #heads = 0
  #closedForOthers = 0
  /** The number of connections that were rejected because their address had its maximum, or the table was full. */
  rejectedOfAddresses = 0
  rejectedFull = 0
  /** The number of connections that were closed because too many had sent no whole request head. */
  closedHeads = 0

  constructor(options: ConnectionTableOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  /** The number of connections that have not sent a whole request head. */
  get heads(): number {
    return this.#heads
  }

  /** The number of connections that were closed to make room for others. */
  get closedForOthers(): number {
    return this.#closedForOthers
  }

  /**
   * Adds a new connection. Closes another one if that is necessary.
   * @returns why the connection must be closed instead; otherwise the caller calls `remove` when it is closed
   */
  add(connection: HeldConnection): RejectionReason | undefined {
    const { limits } = this.#options
    const { address } = connection
    if (!address.isProxy && address.connections.size >= limits.connectionsPerAddress) {
      if (!this.#close(this.#unused(address))) {
        this.rejectedOfAddresses++
        return 'address'
      }
    } else if (this.#size >= limits.connections && !this.#close(this.#unusedOfGreediest(address))) {
      if (!this.#close(this.#usedBeyondShare(address))) {
        this.rejectedFull++
        return 'full'
      }
    }
    this.#size++
    address.connections.add(connection)
    this.#heads++
    address.heads.add(connection)
    const isOfAddress = !address.isProxy && address.heads.size > limits.headsPerAddress
    if (isOfAddress || this.#heads > limits.heads) {
      if (this.#close(isOfAddress ? this.#pending(address) : this.#pendingOfGreediest())) this.closedHeads++
    }
    return undefined
  }

  /**
   * Closes the connections of clients whose addresses are chosen.
   * @returns their number
   */
  closeOf(isChosen: (clientAddress: string) => boolean): number {
    const chosen: HeldConnection[] = []
    for (const { connections } of this.#options.addresses.all()) {
      for (const connection of connections) if (isChosen(connection.clientAddress)) chosen.push(connection)
    }
    for (const connection of chosen) {
      this.remove(connection)
      connection.socket.destroy()
    }
    return chosen.length
  }

  /** Notes that a connection has sent a whole request head, or bytes that are none. */
  headReceived(connection: HeldConnection): void {
    if (!connection.address.heads.delete(connection)) return
    this.#heads--
    this.usageChanged(connection)
  }

  /** Notes that a connection has become idle, or is idle no longer. */
  usageChanged(connection: HeldConnection): void {
    const { address, isIdle } = connection
    if (!isIdle) address.idle.delete(connection)
    else if (address.connections.has(connection)) address.idle.add(connection)
  }

  /** Removes a connection that is closed, also one that was not added. */
  remove(connection: HeldConnection): void {
    const { address } = connection
    if (address.connections.delete(connection)) {
      this.#size--
      this.headReceived(connection)
      address.idle.delete(connection)
    }
    this.#options.addresses.release(address)
  }

  #close(connection: HeldConnection | undefined): boolean {
    if (connection === undefined) return false
    this.#closedForOthers++
    this.remove(connection)
    connection.socket.destroy()
    return true
  }

  /** Returns the oldest connection of an address without a whole request head, after the grace time. */
  #pending({ heads }: ClientAddress): HeldConnection | undefined {
    const [oldest] = heads
    if (oldest === undefined) return undefined
    return this.#options.elapsed() - oldest.openedAt < this.#options.limits.headGrace ? undefined : oldest
  }

  #pendingOfGreediest(): HeldConnection | undefined {
    const greediest = this.#greediest(({ heads }) => heads.size, 0)
    return greediest === undefined ? undefined : this.#pending(greediest)
  }

  /** Returns the address of a client that holds most, and more than `min`. */
  #greediest(held: (address: ClientAddress) => number, min: number): ClientAddress | undefined {
    let greediest: ClientAddress | undefined
    let largest = min
    for (const address of this.#options.addresses.all()) {
      if (address.isProxy || held(address) <= largest) continue
      greediest = address
      largest = held(address)
    }
    return greediest
  }

  /** Returns a connection of an address without a request in progress: one without a head, or the one idle for longest. */
  #unused(address: ClientAddress): HeldConnection | undefined {
    const pending = this.#pending(address)
    if (pending !== undefined) return pending
    let tries = maxIdleTries
    for (const connection of address.idle) {
      if (connection.socket.writableLength === 0) return connection
      if (--tries === 0) return undefined
    }
    return undefined
  }

  /**
   * Returns an unused connection of the address with most connections, among those with no fewer than the new client's. In a
   * full table, the grace time counts only for addresses with no more connections than the new client.
   */
  #unusedOfGreediest(newcomer: ClientAddress): HeldConnection | undefined {
    let maxSize = newcomer.connections.size - 1
    let found: HeldConnection | undefined
    for (const address of this.#options.addresses.all()) {
      if (address.connections.size <= maxSize) continue
      const unused = this.#unused(address) ?? this.#withoutHead(address, newcomer)
      if (unused === undefined) continue
      maxSize = address.connections.size
      found = unused
    }
    return found
  }

  /** Returns the oldest connection without a whole request head of an address that holds more than the new client will. */
  #withoutHead({ heads, connections, isProxy }: ClientAddress, newcomer: ClientAddress): HeldConnection | undefined {
    if (isProxy || connections.size <= newcomer.connections.size + 1) return undefined
    const [oldest] = heads
    return oldest
  }

  /** Returns the oldest connection of the address that holds most, if that is more than its share. */
  #usedBeyondShare(newcomer: ClientAddress): HeldConnection | undefined {
    const min = Math.max(this.#options.limits.connectionShare, newcomer.connections.size)
    const [oldest] = this.#greediest(({ connections }) => connections.size, min)?.connections ?? []
    return oldest
  }
}
