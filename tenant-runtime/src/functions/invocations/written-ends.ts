// Ends that Postgres has taken without waiting for its disk. A moment later all of them are made sure of at once; a crash of
// Postgres takes what it had not written, and we still know it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { InvocationEnd } from './invocation-end.ts'

/** Milliseconds that ends are gathered for. */
const gatherMilliseconds = 200
/** Of logs that are held meanwhile. */
const mostBytes = 1024 * 1024
/** Milliseconds before each further attempt, while the database is away. */
const attempts = [100, 300, 1_000, 3_000, 10_000, 30_000]

export class WrittenEnds {
  readonly #makeSafe: (ends: readonly InvocationEnd[]) => Promise<void>
  readonly #onLoss: (cause: unknown) => void
  #ends: InvocationEnd[] = []
  #bytes = 0
  #isRunning = false
  #hurry: () => void = () => undefined

  /** @param makeSafe returns when the ends are on disk @param onLoss it could not be made sure of */
  constructor(makeSafe: (ends: readonly InvocationEnd[]) => Promise<void>, onLoss: (cause: unknown) => void) {
    this.#makeSafe = makeSafe
    this.#onLoss = onLoss
  }

  add(ends: readonly InvocationEnd[]): void {
    this.#ends.push(...ends)
    for (const { log } of ends) this.#bytes += log?.bytes ?? 0
    if (this.#bytes > mostBytes) this.#hurry()
    if (!this.#isRunning) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#ends.length > 0) {
      await this.#gather()
      const ends = this.#ends
      this.#ends = []
      this.#bytes = 0
      await this.#keep(ends)
    }
    this.#isRunning = false
  }

  #gather(): Promise<void> {
    return new Promise((resolve) => {
      // A process that ends has nothing to make sure of: what Postgres has taken, it writes.
      const timer = setTimeout(resolve, gatherMilliseconds).unref()
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#bytes > mostBytes) this.#hurry()
    })
  }

  async #keep(ends: readonly InvocationEnd[]): Promise<void> {
    for (const pause of [...attempts, undefined]) {
      try {
        await this.#makeSafe(ends)
        return
      } catch (error) {
        if (pause === undefined) this.#onLoss(error)
        else await sleep(pause, undefined, { ref: false })
      }
    }
  }
}
