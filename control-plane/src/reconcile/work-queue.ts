// Keys to work on: each at most once in the queue and once at work, again after a delay, with a bound on how many at once.
import PQueue from 'p-queue'

export interface WorkQueueOptions {
  concurrency: number
  /** Does the work of one key; never throws. `after` milliseconds later the key comes again. */
  work(key: string): Promise<{ after: number | undefined }>
}

export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #queue: PQueue
  /** `again` is set for a key that came while it was at work. */
  readonly #busy = new Map<string, { again: boolean }>()
  readonly #later = new Map<string, NodeJS.Timeout>()
  #stopped = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
    this.#queue = new PQueue({ concurrency: options.concurrency })
  }

  get size(): number {
    return this.#busy.size + this.#later.size
  }

  add(key: string): void {
    if (this.#stopped) return
    clearTimeout(this.#later.get(key))
    this.#later.delete(key)
    const busy = this.#busy.get(key)
    if (busy !== undefined) {
      busy.again = true
      return
    }
    const state = { again: false }
    this.#busy.set(key, state)
    void this.#queue.add(async () => {
      // What came while it waited is covered by the snapshot taken now.
      state.again = false
      const { after } = await this.#options.work(key)
      this.#busy.delete(key)
      this.#next(key, state, after)
    })
  }

  #next(key: string, { again }: { again: boolean }, after: number | undefined): void {
    if (again) this.add(key)
    else if (after !== undefined) this.#addLater(key, after)
  }

  /** Drops what waits and returns when what is at work has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#later.values()) clearTimeout(timer)
    this.#later.clear()
    this.#queue.clear()
    await this.#queue.onPendingZero()
  }

  #addLater(key: string, milliseconds: number): void {
    if (this.#stopped) return
    // A timer's longest delay; what is due later still is looked at then, and put off again.
    this.#later.set(key, setTimeout(() => this.add(key), Math.min(milliseconds, 2 ** 31 - 1)))
  }
}
