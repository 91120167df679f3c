// Runs that go on beside a loop: one for each key at a time. A failure is told, and its key rests for a while.
import { pause } from '@tenantry/contract'
import { RuntimeError } from '../../errors.ts'

interface JobsOptions {
  /** Milliseconds. */
  rest: number
  /** A job is over. */
  onEnd: () => void
  onError: (error: Error) => void
}

export class Jobs {
  readonly #options: JobsOptions
  readonly #stopping = new AbortController()
  readonly #running = new Map<string, Promise<void>>()

  constructor(options: JobsOptions) {
    this.#options = options
  }

  get isStopped(): boolean {
    return this.#stopping.signal.aborted
  }

  get isIdle(): boolean {
    return this.#running.size === 0
  }

  has(key: string): boolean {
    return this.#running.has(key)
  }

  /** Nothing is done when the key is at work, or nothing is begun any more. */
  begin(key: string, work: () => Promise<void>): void {
    if (this.#running.has(key) || this.isStopped) return
    this.#running.set(key, this.#run(key, work))
  }

  /** Nothing is begun any more. */
  stop(): void {
    this.#stopping.abort()
  }

  async ended(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #run(key: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (cause) {
      // What a stop cuts off is no news, and a full queue is nothing that went wrong.
      if (!this.isStopped && !(cause instanceof RuntimeError && cause.code === 'FUNCTIONS_BUSY')) {
        this.#options.onError(new Error('a function could not be started by its trigger', { cause }))
      }
      await pause(this.#options.rest, this.#stopping.signal)
    } finally {
      this.#running.delete(key)
      this.#options.onEnd()
    }
  }
}
