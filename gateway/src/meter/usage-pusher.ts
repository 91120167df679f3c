// Pushes the counters to the control plane: each second the changed ones, cumulative, until they are acknowledged; and
// those of earlier starts' journals, under the names of those starts. Takes the control plane's clock from the responses.
import {
  hourMilliseconds,
  internalPaths,
  Outage,
  pause,
  UsageResponse,
  type Counter,
  type UsagePush,
} from '@tenantry/contract'
import { readResponse, ControlStatusError, postToControl, type ControlPlane } from '../control-call.ts'
import type { ControlClock } from './control-clock.ts'
import { startOfHour, type CounterStore } from './counter-store.ts'
import { removeReplay, type Replay } from './journal/replay.ts'
import type { Meter } from './meter.ts'

interface UsagePusherOptions {
  control: ControlPlane
  /** The gateway's stable name. */
  source: string
  /** The ID of this start, whose counters begin at zero. */
  boot: string
  store: CounterStore
  meter: Pick<Meter, 'tick'>
  clock: ControlClock
  /** The counts of earlier starts. */
  replays: readonly Replay[]
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onError?: (error: Error) => void
  /** Milliseconds between two pushes; doubled after each failure, up to `slowest`. */
  interval?: number
  slowest?: number
  /** Milliseconds for one push, and for all of the last ones together. */
  timeout?: number
}

const countersPerPush = 2_000
/**
 * The number of intervals after which a gateway without changes pushes, so that its clock stays right and it is known to
 * live.
 */
const silentIntervals = 10
/** The timeout of the first request for the time, in milliseconds. */
const helloTimeout = 1_000

export class UsagePusher {
  readonly #options: UsagePusherOptions
  readonly #interval: number
  readonly #slowest: number
  readonly #timeout: number
  #replays: Replay[]
  /** The last hour that was reported as complete, and the time of the last push. */
  #completeUntil = 0
  #pushedAt = -Infinity
  readonly #outage = new Outage()

  constructor(options: UsagePusherOptions) {
    this.#options = options
    this.#interval = options.interval ?? 1_000
    this.#slowest = options.slowest ?? 15_000
    this.#timeout = options.timeout ?? 5_000
    this.#replays = [...options.replays]
  }

  /** The IDs of earlier starts whose counts are not all acknowledged. */
  get unfinished(): readonly string[] {
    return this.#replays.map(({ boot }) => boot)
  }

  /** Requests the time before anything is counted. Never throws, and never takes long. */
  async hello(): Promise<void> {
    await this.#push({ ...this.#origin, counters: [] }, AbortSignal.timeout(helloTimeout)).catch((cause: unknown) =>
      this.#failed(cause),
    )
  }

  /**
   * Pushes until aborted, then the remaining counters, within the time of one push. Never throws.
   * @returns whether all counts of this start were acknowledged
   */
  async run(signal: AbortSignal): Promise<boolean> {
    const isStopped = () => signal.aborted
    let delay = this.#interval
    while (!isStopped()) {
      await pause(delay, signal)
      if (isStopped()) break
      this.#options.meter.tick()
      delay = (await this.#drain(signal)) ? this.#interval : Math.min(delay * 2, this.#slowest)
      const lost = this.#options.store.enforceLimit()
      if (lost > 0)
        this.#options.onError?.(new Error(`${lost} counters were dropped because too many wait for the control plane.`))
    }
    const signalOfEnd = AbortSignal.timeout(this.#timeout)
    const isDrained = await this.#drain(signalOfEnd)
    const hasNothingOpen = this.#options.store.open().length === 0
    if (isDrained && hasNothingOpen) await this.#reportStopped(signalOfEnd)
    return hasNothingOpen
  }

  /** Reports the stop, because the control plane need not keep hours open for a stopped gateway without open counts. */
  async #reportStopped(signal: AbortSignal): Promise<void> {
    const push: UsagePush = {
      ...this.#origin,
      counters: [],
      complete_until: startOfHour(this.#complete()),
      stopped: true,
    }
    await this.#push(push, signal).catch((cause: unknown) =>
      this.#options.onError?.(new Error('The stop could not be reported to the control plane.', { cause })),
    )
  }

  get #origin(): { source: string; boot: string } {
    return { source: this.#options.source, boot: this.#options.boot }
  }

  /**
   * Pushes everything.
   * @returns whether all of it was acknowledged
   */
  async #drain(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#pushChanged(signal)
      await this.#pushReplays(signal)
      const isChanged =
        this.#complete() > this.#completeUntil ||
        this.#options.elapsed() - this.#pushedAt >= silentIntervals * this.#interval
      if (isChanged) await this.#pushOwn([], signal)
      return true
    } catch (cause) {
      if (!signal.aborted) this.#failed(cause)
      return false
    }
  }

  #failed(cause: unknown): void {
    if (this.#outage.failed(this.#options.elapsed()))
      this.#options.onError?.(new Error('Usage could not be pushed.', { cause }))
  }

  async #pushChanged(signal: AbortSignal): Promise<void> {
    const { store } = this.#options
    for (;;) {
      const cells = store.take(countersPerPush)
      if (cells.length === 0) return
      const counters = cells.map((cell) => ({ ...cell.key, value: cell.value }))
      try {
        await this.#pushOwn(counters, signal)
      } catch (cause) {
        store.putBack(cells)
        throw cause
      }
      store.acknowledge(counters, cells)
      // Changes during this push can wait for the next one.
      if (cells.length < countersPerPush) return
    }
  }

  /** Pushes the counts of earlier starts under their names. Counts that the control plane already has change nothing. */
  async #pushReplays(signal: AbortSignal): Promise<void> {
    for (let replay = this.#replays[0]; replay !== undefined; replay = this.#replays[0]) {
      const { source, boot, counters } = replay
      for (let at = 0; at < counters.length; at += countersPerPush) {
        await this.#push({ source, boot, counters: counters.slice(at, at + countersPerPush) }, signal)
      }
      await removeReplay(replay).catch((cause: unknown) =>
        this.#options.onError?.(new Error('A journal could not be removed.', { cause })),
      )
      this.#replays.shift()
    }
  }

  async #pushOwn(counters: Counter[], signal: AbortSignal): Promise<void> {
    const complete = this.#complete()
    await this.#push({ ...this.#origin, counters, complete_until: startOfHour(complete) }, signal)
    this.#completeUntil = complete
  }

  /**
   * Returns the first incomplete hour.
   * @returns number of the hour before which this start and earlier ones have no open counts
   */
  #complete(): number {
    let until = this.#options.store.completeUntil()
    for (const { counters } of this.#replays) {
      for (const { hour } of counters) until = Math.min(until, Math.floor(Date.parse(hour) / hourMilliseconds))
    }
    return until
  }

  async #push(push: UsagePush, signal: AbortSignal): Promise<void> {
    const { control, clock, elapsed } = this.#options
    const requestedAt = elapsed()
    const response = await postToControl(control, internalPaths.usage, {
      timeoutMs: this.#timeout,
      signal,
      body: push,
    }).catch(async (cause: unknown) => {
      // The `Date` header is exact only to the second, which is better than nothing.
      if (cause instanceof ControlStatusError && !clock.known) await clock.received(cause.date, requestedAt)
      throw cause
    })
    const { now } = await readResponse(UsageResponse, response)
    await clock.received(now, requestedAt)
    this.#pushedAt = elapsed()
    this.#outage.over()
  }
}
