// How many connections a tenant's container may hold open at one listener: whatever runs in it, others are served.
import type { Server, Socket } from 'node:net'
import { ipv4Number, isWithin, type Ipv4Range } from './ipv4-range.ts'

/** Where the tenants' containers are. */
export interface TenantAddresses {
  readonly range: Ipv4Range
  /** The part of it that is the region's own: the control plane, and the host whose proxy stands in front. */
  readonly except?: Ipv4Range
}

interface ConnectionBoundsOptions {
  addresses: TenantAddresses
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** Called for a connection beyond the bound, at most once a minute for each address. */
  onRejected: (listener: string, address: string) => void
}

const reportMilliseconds = 60_000

export class ConnectionBounds {
  readonly #options: ConnectionBoundsOptions
  /** When each address was told of last, oldest first. */
  readonly #reported = new Map<number, number>()

  constructor(options: ConnectionBoundsOptions) {
    this.#options = options
  }

  /** @param max open connections of one address */
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
        const left = (open.get(address) ?? 0) - 1
        if (left > 0) open.set(address, left)
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
    for (const [other, at] of this.#reported) {
      if (now - at < reportMilliseconds) break
      this.#reported.delete(other)
    }
    if (this.#reported.has(address)) return
    this.#reported.set(address, now)
    this.#options.onRejected(listener, text)
  }
}
