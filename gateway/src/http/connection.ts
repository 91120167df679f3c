// What is under way on one client connection, so that its end, or nonsense on it, reaches every request it carries.
import type { Answer } from '../forward/answer.ts'
import type { Refusal } from '../errors.ts'

export class Connection {
  /** One, unless the client pipelines. */
  readonly #answers = new Set<Answer>()
  /** Whether the connection was refused as a whole: whatever else comes on it is not answered. */
  refused = false

  open(answer: Answer): void {
    this.#answers.add(answer)
  }

  readonly onOver = (answer: Answer): void => {
    this.#answers.delete(answer)
  }

  get isIdle(): boolean {
    return this.#answers.size === 0
  }

  readonly closed = (): void => {
    for (const answer of [...this.#answers]) answer.clientGone()
  }

  /**
   * The rest of the connection is unreadable while a request is under way: its body, or what follows it.
   * @returns whether the refusal went out in that request's place
   */
  refuseLast(refusal: Refusal): boolean {
    const [only, ...more] = this.#answers
    if (only === undefined || more.length > 0 || only.begun || only.request.complete) return false
    only.keepAlive = false
    only.giveUp(refusal)
    return true
  }
}
