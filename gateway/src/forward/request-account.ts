// Counts one request once, by the status that its client received or would have received.
import type { TenantMeter } from '../meter/meter.ts'
import type { Admission } from '../quota/quota.ts'
import type { Group } from '../resolve/group.ts'

/** The client of a request, whose rejections are limited. */
export interface RequestClient {
  /** Notes that a runtime has served one of its requests, or may have. */
  served(): void
  /** Notes that one of its requests was rejected before it reached anything of a tenant, by the client's own fault. */
  rejected(): void
}

/** The status of a request whose client left before the response began, like nginx's 499. */
export const clientClosedRequest = 499

export class RequestAccount {
  readonly #meter: TenantMeter
  readonly #group: Group
  readonly #method: string
  readonly #elapsed: () => number
  readonly #client: RequestClient
  readonly #since: number
  /** The quota's admission, which is settled when the request ends. */
  #admission: Admission | undefined
  /** The bytes of the response are egress when the request is billable. */
  #outcome: 'uncounted' | 'billable' | 'free' = 'uncounted'

  /**
   * Starts the account of a request, which is in progress until `ended`.
   * @param elapsed milliseconds, monotonic
   */
  constructor(meter: TenantMeter, group: Group, method: string, elapsed: () => number, client: RequestClient) {
    this.#meter = meter
    this.#group = group
    this.#method = method
    this.#elapsed = elapsed
    this.#client = client
    meter.began()
    this.#since = elapsed()
  }

  /**
   * Notes the quota's decision.
   * @param admission what the request settles later; undefined when nothing is deducted for it
   */
  admit(admission: Admission | undefined): void {
    this.#admission = admission
  }

  /**
   * Counts the request.
   * @param isBillable whether a runtime has served the request, or may have served it
   */
  count(status: number, isBillable: boolean): void {
    this.#close(isBillable ? 'billable' : 'free')
    if (isBillable) {
      this.#meter.request(this.#group, this.#method, status, this.#elapsed() - this.#since)
      this.#client.served()
    } else {
      this.#meter.rejected(this.#group, this.#method, status)
      // Other rejections are not the client's fault.
      if (status >= 400 && status < 500 && status !== clientClosedRequest) this.#client.rejected()
    }
    this.#admission?.settle(isBillable, !isBillable)
  }

  /**
   * Counts the request as rejected, instead of `count`: a quota or a rate limit did not admit it, or the client left
   * before.
   */
  countRejected(): void {
    this.#close('free')
    this.#meter.quotaRejected(this.#group)
    this.#admission?.settle(false, false)
  }

  /** Counts bytes of the response's body. The request must be counted already. */
  egress(bytes: number): void {
    if (this.#outcome === 'billable') this.#meter.egress(this.#group, bytes)
  }

  /** Calls the function when everything counted so far will survive a crash of the gateway. */
  whenWritten(next: () => void): void {
    this.#meter.whenWritten(next)
  }

  /** Notes that the response is a stream, which stays open until `streamClosed`. */
  streamOpened(): void {
    this.#meter.opened()
  }

  streamClosed(): void {
    this.#meter.closed()
  }

  ended(): void {
    this.#meter.ended()
  }

  #close(outcome: 'billable' | 'free'): void {
    if (this.#outcome !== 'uncounted') throw new Error('A request was counted twice.')
    this.#outcome = outcome
  }
}
