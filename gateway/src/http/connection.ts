// What is under way on one client connection, so that its end, or nonsense on it, reaches every request it carries.
import type { Rejection } from '../errors.ts'
import type { ForwardedResponse } from '../forward/forwarded-response.ts'

export class Connection {
  /** One, unless the client pipelines. */
  readonly #responses = new Set<ForwardedResponse>()
  /** Whether the connection was refused as a whole: whatever else comes on it is not answered. */
  refused = false

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
   * The rest of the connection is unreadable while a request is under way: its body, or what follows it.
   * @returns whether the refusal went out in that request's place
   */
  rejectLast(rejection: Rejection): boolean {
    const [only, ...more] = this.#responses
    return only !== undefined && more.length === 0 && only.rejectUnreadable(rejection)
  }
}
