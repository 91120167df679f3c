// A queue of keys: each is at most once in the queue and once in work, and may return after a delay. The concurrency is
// bounded, and slow keys take at most half of it.
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'

interface WorkQueueOptions {
  concurrency: number
  clock: Clock
  /** Whether a key is slow, checked when it is added. At most half of `concurrency` works on slow keys. */
  isSlow(key: string): boolean
  /** Does the work of one key; never throws. The key returns after `after` milliseconds. */
  work(key: string): Promise<{ after: number | undefined }>
}

export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #queue: PQueue
  /** Slow keys that are not in the queue yet. */
  readonly #slow: PQueue
  /** Keys in the queue or in work. `again` is set if a key was added during its work. */
  readonly #busy = new Map<string, { again: boolean; since: number }>()
  readonly #later = new Map<string, { cancel: () => void }>()
  #stopped = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
    this.#queue = new PQueue({ concurrency: options.concurrency })
    this.#slow = new PQueue({ concurrency: Math.max(1, Math.floor(options.concurrency / 2)) })
  }

  /** Number of keys in the queue and in work, without delayed ones. */
  get depth(): number {
    return this.#busy.size
  }

  /** Number of delayed keys. */
  get delayed(): number {
    return this.#later.size
  }

  /** Seconds that the oldest key has been waiting or in work. */
  get oldestSeconds(): number {
    const begun = Math.min(...[...this.#busy.values()].map(({ since }) => since))
    return Number.isFinite(begun) ? (this.#options.clock.now().getTime() - begun) / 1000 : 0
  }

  add(key: string): void {
    if (this.#stopped) return
    this.#later.get(key)?.cancel()
    this.#later.delete(key)
    const busy = this.#busy.get(key)
    if (busy !== undefined) {
      busy.again = true
      return
    }
    const state = { again: false, since: this.#options.clock.now().getTime() }
    this.#busy.set(key, state)
    const begin = () => this.#queue.add(() => this.#work(key, state))
    void (this.#options.isSlow(key) ? this.#slow.add(begin) : begin())
  }

  async #work(key: string, state: { again: boolean }): Promise<void> {
    if (this.#stopped) return
    // The snapshot that is read now covers everything that was added while the key waited.
    state.again = false
    const { after } = await this.#options.work(key)
    this.#busy.delete(key)
    this.#next(key, state, after)
  }

  #next(key: string, { again }: { again: boolean }, after: number | undefined): void {
    if (again) this.add(key)
    else if (after !== undefined) this.#addLater(key, after)
  }

  /** Drops waiting keys, and returns when all work has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const { cancel } of this.#later.values()) cancel()
    this.#later.clear()
    this.#slow.clear()
    this.#queue.clear()
    await this.#queue.onPendingZero()
  }

  #addLater(key: string, milliseconds: number): void {
    if (this.#stopped) return
    const { clock } = this.#options
    // A timer's maximum delay. A key that is due later is checked then, and delayed again.
    const cancel = clock.later(Math.min(milliseconds, 2 ** 31 - 1), () => this.add(key))
    this.#later.set(key, { cancel })
  }
}
