// How far one tenant's event log is final, for all who follow it in this process: looked at when something was written
// here, and now and then for what others write. When nobody follows, nobody looks.
import { setTimeout as sleep } from 'node:timers/promises'
import { advance, reached, unknownWatermark, type Poll, type Watermark } from './watermark.ts'

/** Milliseconds between two looks: at least, and without a reason. */
const shortest = 5
const max = 500

interface Waiter {
  after: bigint
  resolve: (upTo: bigint) => void
}

export class TenantFeed {
  readonly #poll: (mark: Watermark) => Promise<Poll | undefined>
  readonly #waiters = new Set<Waiter>()
  #watermark: Watermark = unknownWatermark
  #isRunning = false
  #wasNotified = false
  #wake: () => void = () => undefined

  constructor(poll: (mark: Watermark) => Promise<Poll | undefined>) {
    this.#poll = poll
  }

  /** Something may have been written. */
  notify(): void {
    this.#wasNotified = true
    this.#wake()
  }

  /**
   * Returns the last number of the log; what comes first then is behind it, or not final yet.
   * @throws RuntimeError when the database does not answer
   */
  async poll(): Promise<bigint> {
    await this.#advance()
    return reached(this.#watermark)
  }

  /** Resolves when the log is final beyond `after`, and up to where; rejects when the signal aborts. */
  beyond(after: bigint, signal: AbortSignal): Promise<bigint> {
    if (signal.aborted) return Promise.reject(signal.reason as Error)
    if (this.#watermark.final > after) return Promise.resolve(this.#watermark.final)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        after,
        resolve: (upTo) => {
          signal.removeEventListener('abort', leave)
          this.#waiters.delete(waiter)
          resolve(upTo)
        },
      }
      const leave = () => {
        this.#waiters.delete(waiter)
        this.#wake()
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiters.add(waiter)
      if (!this.#isRunning) void this.#run()
    })
  }

  /** Never throws: a database that does not answer is looked at again, and who follows sees only that nothing comes. */
  async #run(): Promise<void> {
    this.#isRunning = true
    let delay = max
    while (this.#waiters.size > 0) {
      this.#wasNotified = false
      const { pending } = this.#watermark
      await this.#advance().catch(() => undefined)
      for (const waiter of [...this.#waiters])
        if (this.#watermark.final > waiter.after) waiter.resolve(this.#watermark.final)
      // Transactions that are running end soon, or take their time.
      if (this.#watermark.pending === undefined) delay = max
      else delay = this.#watermark.pending === pending ? Math.min(delay * 2, max) : shortest
      await sleep(shortest)
      if (this.#isQuiet()) await this.#pause(delay)
    }
    this.#isRunning = false
  }

  async #advance(): Promise<void> {
    const poll = await this.#poll(this.#watermark)
    if (poll !== undefined) this.#watermark = advance(this.#watermark, poll)
  }

  #isQuiet(): boolean {
    return !this.#wasNotified && this.#waiters.size > 0
  }

  /** Until the time is over or somebody pokes. */
  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
