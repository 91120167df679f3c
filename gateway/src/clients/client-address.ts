// What one client address holds at this gateway, and how many of its requests were rejected.
import type { Socket } from 'node:net'
import type { RateLimit } from '@tenantry/contract'
import type { RequestClient } from '../forward/request-account.ts'
import type { BodyHolder } from '../forward/body-budget.ts'
import { RateGate } from '../quota/rate-gate.ts'

/** A connection as the table sees it. */
export interface HeldConnection {
  readonly socket: Socket
  readonly address: ClientAddress
  /** The client's address, also behind a trusted proxy while a request is in progress. */
  readonly clientAddress: string
  /** The time at which it was opened, in monotonic milliseconds. */
  readonly openedAt: number
  /** Whether no request is in progress on it. */
  readonly isIdle: boolean
}

/** The limit of rejected requests, which is the same for each address. */
export interface RejectionLimit {
  readonly rate: RateLimit
  /** Returns monotonic milliseconds. */
  readonly elapsed: () => number
}

export class ClientAddress implements RequestClient, BodyHolder {
  /** The address, or its /64 network: see `addressKey`. */
  readonly key: string
  /** Whether it is a proxy of the operator, whose connections carry the requests of many clients. */
  readonly isProxy: boolean
  /** The open connections, oldest first. */
  readonly connections = new Set<HeldConnection>()
  /** Those of them that have not sent a whole request head yet, oldest first. */
  readonly heads = new Set<HeldConnection>()
  /** Those that have sent a whole request head and have no request in progress, idle for longest first. */
  readonly idle = new Set<HeldConnection>()
  /** The number of requests in progress. */
  requests = 0
  bodyBytes = 0
  readonly #limit: RejectionLimit
  /** The rejected requests, less those that were served since; undefined before the first. */
  #rejections: RateGate | undefined

  constructor(key: string, isProxy: boolean, limit: RejectionLimit) {
    this.key = key
    this.isProxy = isProxy
    this.#limit = limit
  }

  served(): void {
    this.#rejections?.release()
  }

  rejected(): void {
    if (this.isProxy) return
    this.#rejections ??= new RateGate(this.#limit.rate)
    this.#rejections.take(this.#limit.elapsed())
  }

  /** The milliseconds for which the address has too many rejected requests to send further ones; 0 if it may send them. */
  get rejectionWait(): number {
    return this.#rejections === undefined ? 0 : this.#rejections.wait(this.#limit.elapsed())
  }

  /** Whether nothing of the address has to be remembered. */
  get isClear(): boolean {
    if (this.connections.size > 0 || this.requests > 0 || this.bodyBytes > 0) return false
    return this.#rejections === undefined || this.#rejections.resetIn(this.#limit.elapsed()) === 0
  }
}
