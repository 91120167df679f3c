// A queue of keys: each is at most once in the queue and once in work, and may return after a delay. Each key has a lane. The
// concurrency of a lane is bounded, and slow keys take at most half of it. Work that hangs delays no other lane.
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'

interface WorkQueueOptions {
  /** The maximum number of keys of one lane in work. */
  concurrency: number
  clock: Clock
  /** Returns the lane of a key that was added without one. */
  laneOf(key: string): Promise<string>
  /** Whether a key is slow, checked when it is added. At most half of `concurrency` works on slow keys. */
  isSlow(key: string): boolean
  /** Does the work of one key; never throws. The key returns after `after` milliseconds. */
  work(key: string): Promise<{ after: number | undefined }>
}

/** The maximum number of simultaneous calls of `laneOf`. */
const maxLookups = 8

interface Lane {
  queue: PQueue
  /** Slow keys that are not in the queue yet. */
  slow: PQueue
}

export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #lookups = new PQueue({ concurrency: maxLookups })
  /** Keys in the queue or in work. `again` is set if a key was added during its work. */
  readonly #busy = new Map<string, { again: boolean; since: number }>()
  readonly #later = new Map<string, { cancel: () => void }>()
  #stopped = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
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

  /** Adds a key. @param lane its lane, if it is known */
  add(key: string, lane?: string): void {
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
    if (lane === undefined) void this.#lookUp(key, state)
    else this.#enter(key, state, lane)
  }

  async #lookUp(key: string, state: { again: boolean }): Promise<void> {
    // The work, too, fails without what the lookup reads, and is repeated.
    const lane = await this.#lookups.add(() => this.#options.laneOf(key).catch(() => ''))
    if (!this.#stopped) this.#enter(key, state, lane)
  }

  #enter(key: string, state: { again: boolean }, lane: string): void {
    const { queue, slow } = this.#lane(lane)
    const begin = () => queue.add(() => this.#work(key, state, lane))
    void (this.#options.isSlow(key) ? slow.add(begin) : begin())
  }

  #lane(name: string): Lane {
    const { concurrency } = this.#options
    const lane = this.#lanes.get(name) ?? {
      queue: new PQueue({ concurrency }),
      slow: new PQueue({ concurrency: Math.max(1, Math.floor(concurrency / 2)) }),
    }
    this.#lanes.set(name, lane)
    return lane
  }

  async #work(key: string, state: { again: boolean }, lane: string): Promise<void> {
    if (this.#stopped) return
    // The snapshot that is read now covers everything that was added while the key waited.
    state.again = false
    const { after } = await this.#options.work(key)
    this.#busy.delete(key)
    this.#next(key, state, lane, after)
  }

  #next(key: string, { again }: { again: boolean }, lane: string, after: number | undefined): void {
    if (again) this.add(key, lane)
    else if (after !== undefined) this.#addLater(key, after)
  }

  /** Drops waiting keys, and returns when all work has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const { cancel } of this.#later.values()) cancel()
    this.#later.clear()
    this.#lookups.clear()
    const lanes = [...this.#lanes.values()]
    for (const { queue, slow } of lanes) {
      slow.clear()
      queue.clear()
    }
    await Promise.all([this.#lookups, ...lanes.map(({ queue }) => queue)].map((queue) => queue.onPendingZero()))
  }

  #addLater(key: string, milliseconds: number): void {
    if (this.#stopped) return
    const { clock } = this.#options
    // A timer's maximum delay. A key that is due later is checked then, and delayed again.
    const cancel = clock.later(Math.min(milliseconds, 2 ** 31 - 1), () => this.add(key))
    this.#later.set(key, { cancel })
  }
}
