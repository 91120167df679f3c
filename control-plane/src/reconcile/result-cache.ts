// Stores the results of pure functions that are computed again and again from the same input.

/** Results by a key that contains everything from which they are computed. If there are too many, the oldest is evicted. */
export class ResultCache<Result extends object> {
  readonly #maxResults: number
  readonly #results = new Map<string, Result>()

  constructor(maxResults: number) {
    this.#maxResults = maxResults
  }

  /** Returns the result of a key. @param compute called if it is not stored; an error of it is not stored either */
  get(key: string, compute: () => Result): Result {
    const stored = this.#results.get(key)
    if (stored !== undefined) return stored
    const result = compute()
    const [oldest] = this.#results.keys()
    if (oldest !== undefined && this.#results.size >= this.#maxResults) this.#results.delete(oldest)
    this.#results.set(key, result)
    return result
  }
}
