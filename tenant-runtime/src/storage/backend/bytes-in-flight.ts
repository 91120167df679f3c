// What uploads of all tenants together may hold in memory: bytes that have come and are not on disk yet. Whoever would
// exceed it takes no more from its sender until others have written theirs.
import { RuntimeError } from '../../errors.ts'

interface Waiting {
  bytes: number
  resolve: () => void
  timer: NodeJS.Timeout
}

export class BytesInFlight {
  readonly #waitMilliseconds: number
  #free: number
  /** In the order they came; no more than there are connections, since each upload waits once. */
  readonly #waiting = new Set<Waiting>()

  constructor(total: number, waitMilliseconds: number) {
    this.#free = total
    this.#waitMilliseconds = waitMilliseconds
  }

  get free(): number {
    return this.#free
  }

  /** Who waits must have handed all it holds to the disk before. @throws RuntimeError STORAGE_UNAVAILABLE when the wait is too long */
  async take(bytes: number): Promise<void> {
    if (this.#waiting.size === 0 && bytes <= this.#free) {
      this.#free -= bytes
      return
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting)
        reject(new RuntimeError('STORAGE_UNAVAILABLE', 'too much is being uploaded at once; send it again'))
        // Who stands behind may need less.
        this.#serve()
      }, this.#waitMilliseconds)
      const waiting: Waiting = { bytes, resolve, timer }
      this.#waiting.add(waiting)
    })
  }

  give(bytes: number): void {
    this.#free += bytes
    this.#serve()
  }

  #serve(): void {
    for (const waiting of this.#waiting) {
      if (waiting.bytes > this.#free) return
      this.#free -= waiting.bytes
      this.#waiting.delete(waiting)
      clearTimeout(waiting.timer)
      waiting.resolve()
    }
  }
}
