// Keys to work on: each at most once in the queue and once at work, again after a delay, with a bound on how many at once,
// half of which is never taken by keys that are slow.
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'

interface WorkQueueOptions {
  concurrency: number
  clock: Clock
  /** Asked when the key comes: of those at most half of `concurrency` are at work, or wait before others. */
  isSlow(key: string): boolean
  /** Does the work of one key; never throws. `after` milliseconds later the key comes again. */
  work(key: string): Promise<{ after: number | undefined }>
}

export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #queue: PQueue
  /** Each waits here until it may wait with the others. */
  readonly #slow: PQueue
  /** `again` is set for a key that came while it was at work. */
  readonly #busy = new Map<string, { again: boolean; since: number }>()
  readonly #later = new Map<string, { cancel: () => void }>()
  #stopped = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
    this.#queue = new PQueue({ concurrency: options.concurrency })
    this.#slow = new PQueue({ concurrency: Math.max(1, Math.floor(options.concurrency / 2)) })
  }

  /** Waiting and at work; those put off until later are not counted. */
  get depth(): number {
    return this.#busy.size
  }

  /** Put off until later. */
  get delayed(): number {
    return this.#later.size
  }

  /** Seconds that the longest-waiting key has waited or worked. */
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
    // What came while it waited is covered by the snapshot taken now.
    state.again = false
    const { after } = await this.#options.work(key)
    this.#busy.delete(key)
    this.#next(key, state, after)
  }

  #next(key: string, { again }: { again: boolean }, after: number | undefined): void {
    if (again) this.add(key)
    else if (after !== undefined) this.#addLater(key, after)
  }

  /** Drops what waits and returns when what is at work has ended. */
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
    // A timer's longest delay; what is due later still is looked at then, and put off again.
    const cancel = clock.later(Math.min(milliseconds, 2 ** 31 - 1), () => this.add(key))
    this.#later.set(key, { cancel })
  }
}
