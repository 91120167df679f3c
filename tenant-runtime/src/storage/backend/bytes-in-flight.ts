// Bounds the bytes that the uploads of all tenants hold in memory: received but not on disk yet. An upload that would
// exceed the bound stops reading from its sender until others have written their bytes.
import { RuntimeError } from '../../errors.ts'

interface Waiting {
  bytes: number
  resolve: () => void
  timer: NodeJS.Timeout
}

export class BytesInFlight {
  readonly #waitMilliseconds: number
  #free: number
  /** Uploads in the order of their arrival; no more than there are connections, because each upload waits once. */
  readonly #waiting = new Set<Waiting>()

  constructor(total: number, waitMilliseconds: number) {
    this.#free = total
    this.#waitMilliseconds = waitMilliseconds
  }

  get free(): number {
    return this.#free
  }

  /**
   * Reserves bytes, and waits until they are free. Before a call, the caller must start to write the bytes it holds.
   * @throws RuntimeError STORAGE_UNAVAILABLE if the wait is too long
   */
  async take(bytes: number): Promise<void> {
    if (this.#waiting.size === 0 && bytes <= this.#free) {
      this.#free -= bytes
      return
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting)
        reject(new RuntimeError('STORAGE_UNAVAILABLE', 'Too many bytes are being uploaded at once. Retry the upload.'))
        // The next ones in the queue may need fewer bytes.
        this.#serve()
      }, this.#waitMilliseconds)
      const waiting: Waiting = { bytes, resolve, timer }
      this.#waiting.add(waiting)
    })
  }

  /** Frees reserved bytes. */
  release(bytes: number): void {
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
