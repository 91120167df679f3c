// The requests in progress on one client connection, so that its end or invalid bytes on it reach each of them.
import type { Rejection } from '../errors.ts'
import type { ForwardedResponse } from '../forward/forwarded-response.ts'

export class Connection {
  /** The responses in progress: one, unless the client pipelines. */
  readonly #responses = new Set<ForwardedResponse>()
  /** Whether the connection was rejected as a whole, so that no further request on it gets a response. */
  isRejected = false

  open(response: ForwardedResponse): void {
    this.#responses.add(response)
  }

  readonly onOver = (response: ForwardedResponse): void => {
    this.#responses.delete(response)
  }

  get isIdle(): boolean {
    return this.#responses.size === 0
  }

  readonly closed = (): void => {
    for (const response of [...this.#responses]) response.clientGone()
  }

  /**
   * Rejects the request in progress, because the rest of the connection is not valid HTTP.
   * @returns whether the rejection was sent as that request's response
   */
  rejectLast(rejection: Rejection): boolean {
    const [only, ...more] = this.#responses
    return only !== undefined && more.length === 0 && only.rejectUnreadable(rejection)
  }
}
