// Limits the open connections of a tenant's container at one listener, so that no container can keep others from being
// served.
import type { Server, Socket } from 'node:net'
import { ipv4Number, isWithin, type Ipv4Range } from './ipv4-range.ts'

/** The addresses of the tenants' containers. */
export interface TenantAddresses {
  readonly range: Ipv4Range
  /** The part of the range that is the region's own: the control plane, and the host whose proxy is in front. */
  readonly except?: Ipv4Range
}

interface ConnectionBoundsOptions {
  addresses: TenantAddresses
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Called for a connection beyond the limit, at most once a minute for each address. */
  onRejected: (listener: string, address: string) => void
}

const reportMilliseconds = 60_000

export class ConnectionBounds {
  readonly #options: ConnectionBoundsOptions
  /** The time of the last report of each address, oldest first. */
  readonly #reportedAt = new Map<number, number>()

  constructor(options: ConnectionBoundsOptions) {
    this.#options = options
  }

  /**
   * Limits the connections to a listener.
   * @param max the maximum number of open connections of one address
   */
  apply(listener: string, server: Server, max: number): void {
    const open = new Map<number, number>()
    server.on('connection', (socket: Socket) => {
      const address = this.#tenantAddress(socket.remoteAddress)
      if (address === undefined) return
      const before = open.get(address) ?? 0
      if (before >= max) {
        const { remoteAddress = '' } = socket
        socket.destroy()
        this.#report(listener, address, remoteAddress)
        return
      }
      open.set(address, before + 1)
      socket.on('close', () => {
        const remaining = (open.get(address) ?? 0) - 1
        if (remaining > 0) open.set(address, remaining)
        else open.delete(address)
      })
    })
  }

  #tenantAddress(text: string | undefined): number | undefined {
    const { range, except } = this.#options.addresses
    const address = text === undefined ? undefined : ipv4Number(text)
    if (address === undefined || !isWithin(range, address)) return undefined
    return except !== undefined && isWithin(except, address) ? undefined : address
  }

  #report(listener: string, address: number, text: string): void {
    const now = this.#options.elapsed()
    for (const [other, at] of this.#reportedAt) {
      if (now - at < reportMilliseconds) break
      this.#reportedAt.delete(other)
    }
    if (this.#reportedAt.has(address)) return
    this.#reportedAt.set(address, now)
    this.#options.onRejected(listener, text)
  }
}
