// Values that wait for a reader, up to a limit.

/** A queue with one reader. It ends when its signal aborts, or when the reader is too slow. */
export class BoundedQueue<T> {
  readonly #max: number
  readonly #signal: AbortSignal
  #waiting: T[] = []
  #isFull = false
  #wake: () => void = () => undefined

  constructor(max: number, signal: AbortSignal) {
    this.#max = max
    this.#signal = signal
  }

  push(value: T): void {
    if (this.#waiting.length >= this.#max) this.#isFull = true
    else this.#waiting.push(value)
    this.#wake()
  }

  /** Yields the values. @throws Error when more wait than the limit allows */
  async *values(): AsyncGenerator<T, undefined> {
    const onAbort = () => this.#wake()
    this.#signal.addEventListener('abort', onAbort)
    try {
      while (!this.#signal.aborted) {
        const values = this.#waiting
        this.#waiting = []
        yield* values
        if (this.#isFull) throw new Error(`More than ${this.#max} values wait for a slow reader.`)
        if (this.#waiting.length > 0) continue
        await new Promise<void>((resolve) => {
          this.#wake = resolve
          if (this.#signal.aborted) resolve()
        })
      }
    } finally {
      this.#signal.removeEventListener('abort', onAbort)
    }
  }
}
