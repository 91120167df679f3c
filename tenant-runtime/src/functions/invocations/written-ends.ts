// Ends that Postgres has taken without waiting for its disk. A moment later all of them are made sure of at once; a crash of
// Postgres takes what it had not written, and we still know it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { InvocationEnd } from './invocation-end.ts'

/** Milliseconds that ends are gathered for. */
const gatherMilliseconds = 200
/** Of logs that are held meanwhile. */
const maxBytes = 1024 * 1024
/** Milliseconds before the next attempt, while the database is away. */
const retryMilliseconds = 300

interface WrittenEndsOptions {
  /** Returns when the ends are on disk. */
  makeSafe: (ends: readonly InvocationEnd[]) => Promise<void>
  /** Whether what `makeSafe` threw may be over in a moment. */
  isPassing: (cause: unknown) => boolean
  /** They could not be made sure of. */
  onLoss: (cause: unknown) => void
}

export class WrittenEnds {
  readonly #options: WrittenEndsOptions
  /** Not known to be safe. */
  #ends: InvocationEnd[] = []
  #bytes = 0
  #isRunning = false
  #isDoubtful = false
  #securing: Promise<void> | undefined
  #expedite: () => void = () => undefined

  constructor(options: WrittenEndsOptions) {
    this.#options = options
  }

  add(ends: readonly InvocationEnd[]): void {
    this.#ends.push(...ends)
    for (const { log } of ends) this.#bytes += log?.bytes ?? 0
    if (this.#bytes > maxBytes) this.#expedite()
    if (!this.#isRunning) void this.#run()
  }

  /** Something happened that a crash of Postgres may be the cause of. */
  doubt(): void {
    this.#isDoubtful = true
  }

  /** Returns when whatever a crash has taken is written again. @throws what `makeSafe` throws */
  async settled(): Promise<void> {
    if (this.#isDoubtful) await this.#secure()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#ends.length > 0) {
      await this.#gather()
      await this.#secure().catch(() => sleep(retryMilliseconds, undefined, { ref: false }))
    }
    this.#isRunning = false
  }

  #gather(): Promise<void> {
    return new Promise((resolve) => {
      // A process that ends has nothing to make sure of: what Postgres has taken, it writes.
      const timer = setTimeout(resolve, gatherMilliseconds).unref()
      this.#expedite = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#bytes > maxBytes) this.#expedite()
    })
  }

  #secure(): Promise<void> {
    return (this.#securing ??= this.#secureAll().finally(() => (this.#securing = undefined)))
  }

  async #secureAll(): Promise<void> {
    const ends = this.#ends
    const bytes = this.#bytes
    this.#ends = []
    this.#bytes = 0
    this.#isDoubtful = false
    if (ends.length === 0) return
    try {
      await this.#options.makeSafe(ends)
    } catch (error) {
      if (!this.#options.isPassing(error)) {
        this.#options.onLoss(error)
        return
      }
      this.#ends = [...ends, ...this.#ends]
      this.#bytes += bytes
      this.#isDoubtful = true
      throw error
    }
  }
}
