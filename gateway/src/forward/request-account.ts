// What one request is counted as: once, by the status that its client got or would have got.
import type { TenantMeter } from '../meter/meter.ts'
import type { Admission } from '../quota/quota.ts'
import type { Group } from '../resolve/group.ts'

export class RequestAccount {
  readonly #meter: TenantMeter
  readonly #group: Group
  readonly #method: string
  readonly #elapsed: () => number
  readonly #since: number
  /** What the tenant's quota has admitted the request by. */
  #admission: Admission | undefined
  /** The bytes of the response are egress when the request is billable. */
  #outcome: 'uncounted' | 'billable' | 'free' = 'uncounted'

  /** The request is in progress from now until `ended`. @param elapsed milliseconds, monotonic */
  constructor(meter: TenantMeter, group: Group, method: string, elapsed: () => number) {
    this.#meter = meter
    this.#group = group
    this.#method = method
    this.#elapsed = elapsed
    meter.began()
    this.#since = elapsed()
  }

  /** @param admission what the request is to settle; undefined when nothing is deducted for it */
  admit(admission: Admission | undefined): void {
    this.#admission = admission
  }

  /** @param isBillable whether a runtime has served the request, or may have served it */
  count(status: number, isBillable: boolean): void {
    this.#close(isBillable ? 'billable' : 'free')
    if (isBillable) this.#meter.request(this.#group, this.#method, status, this.#elapsed() - this.#since)
    else this.#meter.rejected(this.#group, this.#method, status)
    this.#admission?.settle(isBillable)
  }

  /** Instead of `count`: a quota or a rate limit does not allow the request, or the client left before it did. */
  countRejected(): void {
    this.#close('free')
    this.#meter.refused(this.#group)
    this.#admission?.settle(false)
  }

  /** Bytes of the response's body, once the request is counted. */
  egress(bytes: number): void {
    if (this.#outcome === 'billable') this.#meter.egress(this.#group, bytes)
  }

  /** Continues once all that was counted until now will survive the gateway's death. */
  kept(goOn: () => void): void {
    this.#meter.kept(goOn)
  }

  /** The response is a stream that stays open until `streamClosed`. */
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
