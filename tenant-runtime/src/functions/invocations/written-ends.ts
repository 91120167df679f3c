// Ends of runs that Postgres has committed without waiting for its disk. Shortly after, one commit that waits makes all of them
// safe. Until then they are held in memory, so that those that a crash of Postgres loses are written again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { InvocationEnd } from './invocation-end.ts'

/** Time for which ends are gathered. */
const gatherMilliseconds = 200
/** Bytes of held logs after which gathering ends. */
const maxBytes = 1024 * 1024
/** Time before the next attempt while the database is unavailable. */
const retryMilliseconds = 300

interface WrittenEndsOptions {
  /** Returns when the ends are on disk. */
  makeSafe: (ends: readonly InvocationEnd[]) => Promise<void>
  /** Whether an error of `makeSafe` is temporary. */
  isTemporary: (cause: unknown) => boolean
  /** Called if ends may be lost. */
  onLoss: (cause: unknown) => void
}

export class WrittenEnds {
  readonly #options: WrittenEndsOptions
  /** Ends that are not known to be on disk. */
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

  /** Notes an error that a crash of Postgres may have caused. */
  markDoubtful(): void {
    this.#isDoubtful = true
  }

  /** After `markDoubtful`, returns when ends that a crash lost are written again. @throws the error of `makeSafe` */
  async ensureSafe(): Promise<void> {
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
      // The timer does not keep the process alive: if only this process ends, Postgres writes what it has committed.
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
      if (!this.#options.isTemporary(error)) {
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
