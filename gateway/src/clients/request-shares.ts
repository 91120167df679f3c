// The requests in progress at this gateway, of which a tenant and a client address may have a share. Never more than is still
// free, so that others always find room.
import { clientBusy, tenantBusy, tooManyRejections, type Rejection } from '../errors.ts'
import type { ClientAddress } from './client-address.ts'

interface RequestLimits {
  /** The maximum number of requests in progress. */
  requests: number
  requestsPerTenant: number
  requestsPerAddress: number
}

export class RequestShares {
  readonly #limits: RequestLimits
  /** The number of requests in progress, upgraded connections included. */
  inProgress = 0
  /** The number of requests that were rejected because of a share. */
  rejectedOfTenants = 0
  rejectedOfAddresses = 0
  /** The number of connections that were closed because of too many requests in progress on them. */
  closedConnections = 0
  /** The number of requests that were rejected because too many of their client's had been rejected. */
  rejectedAfterRejections = 0

  constructor(limits: RequestLimits) {
    this.#limits = limits
  }

  /**
   * Decides on a request of an address with too many rejected requests.
   * @param wait milliseconds for which it may send no further ones
   */
  afterRejections(wait: number): Rejection | undefined {
    if (wait === 0) return undefined
    this.rejectedAfterRejections++
    return tooManyRejections(wait)
  }

  /**
   * Decides on a request that is already counted as in progress.
   * @param ofTenant the number of its tenant's requests in progress, without those that wait for their turn
   * @param waiting the number of all requests that wait for their turn
   * @returns undefined when the request may be served
   */
  check(ofTenant: number, waiting: number, client: ClientAddress): Rejection | undefined {
    const { requests, requestsPerTenant, requestsPerAddress } = this.#limits
    const free = requests - (this.inProgress - waiting)
    if (ofTenant > requestsPerTenant || ofTenant > free) {
      this.rejectedOfTenants++
      return tenantBusy
    }
    if (client.isProxy || (client.requests <= requestsPerAddress && client.requests <= free)) return undefined
    this.rejectedOfAddresses++
    return clientBusy
  }
}
