// Runs jobs in the background of a loop, one at a time for each key. After a failure, which is reported, the key pauses.
import { pause } from '@tenantry/contract'
import { RuntimeError } from '../../errors.ts'

interface JobsOptions {
  /** Milliseconds for which a key pauses after a failure. */
  pauseAfterFailure: number
  /** Called after each job. */
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

  /** Starts a job, unless one of the key is running or `stop` was called. */
  begin(key: string, work: () => Promise<void>): void {
    if (this.#running.has(key) || this.isStopped) return
    this.#running.set(key, this.#run(key, work))
  }

  /** Prevents further jobs. */
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
      // A job that a stop interrupts, or that finds a full queue, is not an error.
      if (!this.isStopped && !(cause instanceof RuntimeError && cause.code === 'FUNCTIONS_BUSY')) {
        this.#options.onError(new Error('A trigger could not start its function.', { cause }))
      }
      await pause(this.#options.pauseAfterFailure, this.#stopping.signal)
    } finally {
      this.#running.delete(key)
      this.#options.onEnd()
    }
  }
}
