// One client connection and the requests in progress on it, so that its end or invalid bytes on it reach each of them.
import type { Socket } from 'node:net'
import type { ClientAddress, HeldConnection } from '../clients/client-address.ts'
import type { BlockedAddresses } from '../clients/blocked-addresses.ts'
import type { ClientAddresses } from '../clients/client-addresses.ts'
import type { ConnectionTable } from '../clients/connection-table.ts'
import type { Rejection } from '../errors.ts'
import type { RequestShares } from '../clients/request-shares.ts'
import type { ForwardedResponse } from '../forward/forwarded-response.ts'
import type { RequestClient } from '../forward/request-account.ts'

/** The parts that all connections share. */
export interface ConnectionParts {
  readonly table: ConnectionTable
  readonly blocked: BlockedAddresses
  readonly addresses: ClientAddresses
  readonly shares: RequestShares
}

export class Connection implements HeldConnection, RequestClient {
  readonly socket: Socket
  readonly address: ClientAddress
  readonly openedAt: number
  readonly #parts: ConnectionParts
  readonly #peer: string
  /** The address that a trusted proxy has reported for the last request; undefined without such a proxy. */
  reportedAddress: string | undefined
  /** Whether the last request was served, and not rejected. */
  wasServed = false
  /** The responses in progress, with the address of each request: one, unless the client pipelines. */
  readonly #responses = new Map<ForwardedResponse, ClientAddress>()
  /** The number of requests in progress. */
  get requests(): number {
    return this.#responses.size
  }

  /** Whether the connection was rejected as a whole, so that no further request on it gets a response. */
  isRejected = false
  #isUpgraded = false

  constructor(socket: Socket, peer: string, openedAt: number, parts: ConnectionParts) {
    this.socket = socket
    this.#peer = peer
    this.address = parts.addresses.of(peer)
    this.openedAt = openedAt
    this.#parts = parts
  }

  /** Notes that a whole request head has arrived, or bytes that are none. */
  headReceived(): void {
    this.#parts.table.headReceived(this)
  }

  /**
   * Notes that a request is in progress, until `onOver`.
   * @param client the address of the request: the connection's, unless that is a proxy
   */
  open(response: ForwardedResponse, client: ClientAddress): void {
    this.#responses.set(response, client)
    client.requests++
    this.#parts.shares.inProgress++
    this.#parts.table.usageChanged(this)
  }

  /** Notes that it has switched to another protocol. */
  upgraded(): void {
    this.#isUpgraded = true
    this.#parts.table.usageChanged(this)
  }

  readonly onOver = (response: ForwardedResponse): void => {
    const client = this.#responses.get(response)
    if (client === undefined) return
    this.#responses.delete(response)
    this.#parts.shares.inProgress--
    client.requests--
    if (client !== this.address) this.#parts.addresses.release(client)
    this.#parts.table.usageChanged(this)
  }

  served(): void {
    this.wasServed = true
    this.address.served()
  }

  rejected(): void {
    this.wasServed = false
    this.address.rejected()
  }

  get clientAddress(): string {
    return this.isIdle ? this.#peer : (this.reportedAddress ?? this.#peer)
  }

  get isIdle(): boolean {
    return this.#responses.size === 0 && !this.#isUpgraded
  }

  readonly closed = (): void => {
    this.#parts.table.remove(this)
    for (const response of [...this.#responses.keys()]) response.clientGone()
  }

  /**
   * Rejects the request in progress, because the rest of the connection is not valid HTTP.
   * @returns whether the rejection was sent as that request's response
   */
  rejectLast(rejection: Rejection): boolean {
    const [only, ...more] = this.#responses.keys()
    return only !== undefined && more.length === 0 && only.rejectUnreadable(rejection)
  }
}
