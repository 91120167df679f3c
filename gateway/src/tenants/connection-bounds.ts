// Limits the open connections of a tenant's container at one listener, so that no container can keep others from being
// served.
import type { Server, Socket } from 'node:net'
import { LimitedReports } from '@tenantry/contract'
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

export class ConnectionBounds {
  readonly #options: ConnectionBoundsOptions
  readonly #reports: LimitedReports<number>

  constructor(options: ConnectionBoundsOptions) {
    this.#options = options
    this.#reports = new LimitedReports(options.elapsed)
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
        if (this.#reports.isDue(address)) this.#options.onRejected(listener, remoteAddress)
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
}
