// The position up to which one tenant's log is final, for all of its followers in this process. The log is polled after
// writes of this process, and regularly for those of others, but only while it has followers.
import { setTimeout as sleep } from 'node:timers/promises'
import { advance, reached, unknownWatermark, type Poll, type Watermark } from './watermark.ts'

/** Milliseconds: the minimum between two polls, and the maximum without a notification. */
const minPollMs = 5
const maxPollMs = 500

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

  /** Notifies the feed that new entries may have been written. */
  notify(): void {
    this.#wasNotified = true
    this.#wake()
  }

  /**
   * Polls the log and returns its last number. Later entries have greater numbers, or are not final yet.
   * @throws RuntimeError when the database does not respond
   */
  async poll(): Promise<bigint> {
    await this.#advance()
    return reached(this.#watermark)
  }

  /** Resolves to the position up to which the log is final, when that is beyond `after`. Rejects when the signal aborts. */
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

  /**
   * Polls while there are waiters. Never throws: after a failure the database is polled again, and followers only receive
   * nothing.
   */
  async #run(): Promise<void> {
    this.#isRunning = true
    let delay = maxPollMs
    while (this.#waiters.size > 0) {
      this.#wasNotified = false
      const { pending } = this.#watermark
      await this.#advance().catch(() => undefined)
      for (const waiter of [...this.#waiters])
        if (this.#watermark.final > waiter.after) waiter.resolve(this.#watermark.final)
      // Running transactions either end soon, or take much longer.
      if (this.#watermark.pending === undefined) delay = maxPollMs
      else delay = this.#watermark.pending === pending ? Math.min(delay * 2, maxPollMs) : minPollMs
      await sleep(minPollMs)
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

  /** Waits until the time is over or `notify` is called. */
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
