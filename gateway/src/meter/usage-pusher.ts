// Brings the counters to the control plane: each second what changed, cumulative, again and again until acknowledged;
// what earlier starts left in their journals, under their names; and takes the control plane's clock from the answers.
import {
  hourMilliseconds,
  internalPaths,
  Outage,
  pause,
  UsageResponse,
  type Counter,
  type UsagePush,
} from '@tenantry/contract'
import { respondAs, ControlRejected, postToControl, type ControlPlane } from '../control-call.ts'
import type { ControlClock } from './control-clock.ts'
import { startOfHour, type CounterStore } from './counter-store.ts'
import { removeReplay, type Replay } from './journal/replay.ts'
import type { Meter } from './meter.ts'

interface UsagePusherOptions {
  control: ControlPlane
  /** The gateway's stable name. */
  source: string
  /** Fresh for each start: the counters begin at zero with it. */
  boot: string
  store: CounterStore
  meter: Pick<Meter, 'tick'>
  clock: ControlClock
  /** What earlier starts counted. */
  replays: readonly Replay[]
  /** Milliseconds, monotonic. */
  elapsed: () => number
  onError?: (error: Error) => void
  /** Milliseconds between two pushes; doubled after each failure, up to `slowest`. */
  interval?: number
  slowest?: number
  /** Milliseconds for one push; and for all of the last ones together. */
  timeout?: number
}

const countersPerPush = 2_000
/** Intervals after which a gateway without anything to say says so, so that its clock stays right and it is known to live. */
const silentIntervals = 10
/** At the start; milliseconds. */
const helloTimeout = 1_000

export class UsagePusher {
  readonly #options: UsagePusherOptions
  readonly #interval: number
  readonly #slowest: number
  readonly #timeout: number
  #replays: Replay[]
  /** The hour that was last said to be complete, and when anything was last said. */
  #completeUntil = 0
  #reportedAt = -Infinity
  readonly #outage = new Outage()

  constructor(options: UsagePusherOptions) {
    this.#options = options
    this.#interval = options.interval ?? 1_000
    this.#slowest = options.slowest ?? 15_000
    this.#timeout = options.timeout ?? 5_000
    this.#replays = [...options.replays]
  }

  /** Earlier boots of which not all is acknowledged. */
  get unfinished(): readonly string[] {
    return this.#replays.map(({ boot }) => boot)
  }

  /** Before anything is counted: asks for the time. Never throws, and never takes long. */
  async hello(): Promise<void> {
    await this.#push({ ...this.#origin, counters: [] }, AbortSignal.timeout(helloTimeout)).catch((cause: unknown) =>
      this.#failed(cause),
    )
  }

  /**
   * Pushes until aborted, then what is left, for as long as one push may take. Never throws.
   * @returns whether all that this start has counted was acknowledged
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
        this.#options.onError?.(new Error(`${lost} counters were given up: too many wait for the control plane`))
    }
    const signalOfEnd = AbortSignal.timeout(this.#timeout)
    const isDrained = await this.#drain(signalOfEnd)
    const owesNothing = this.#options.store.open().length === 0
    if (isDrained && owesNothing) await this.#reportStopped(signalOfEnd)
    return owesNothing
  }

  /** Hours need not wait for a gateway that is gone and owes nothing. */
  async #reportStopped(signal: AbortSignal): Promise<void> {
    const push: UsagePush = {
      ...this.#origin,
      counters: [],
      complete_until: startOfHour(this.#complete()),
      stopped: true,
    }
    await this.#push(push, signal).catch((cause: unknown) =>
      this.#options.onError?.(new Error('the stop was not told to the control plane', { cause })),
    )
  }

  get #origin(): { source: string; boot: string } {
    return { source: this.#options.source, boot: this.#options.boot }
  }

  /** @returns whether all that was there to say was acknowledged */
  async #drain(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#pushChanged(signal)
      await this.#pushReplays(signal)
      const isChanged =
        this.#complete() > this.#completeUntil ||
        this.#options.elapsed() - this.#reportedAt >= silentIntervals * this.#interval
      if (isChanged) await this.#pushOwn([], signal)
      return true
    } catch (cause) {
      if (!signal.aborted) this.#failed(cause)
      return false
    }
  }

  #failed(cause: unknown): void {
    if (this.#outage.failed(this.#options.elapsed()))
      this.#options.onError?.(new Error('usage was not pushed', { cause }))
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
        store.refused(cells)
        throw cause
      }
      store.acknowledge(counters, cells)
      // What changed during this push can wait for the next.
      if (cells.length < countersPerPush) return
    }
  }

  /** Under the names of those who counted: whatever of it is known already changes nothing. */
  async #pushReplays(signal: AbortSignal): Promise<void> {
    for (let replay = this.#replays[0]; replay !== undefined; replay = this.#replays[0]) {
      const { source, boot, counters } = replay
      for (let at = 0; at < counters.length; at += countersPerPush) {
        await this.#push({ source, boot, counters: counters.slice(at, at + countersPerPush) }, signal)
      }
      await removeReplay(replay).catch((cause: unknown) =>
        this.#options.onError?.(new Error('a journal was not removed', { cause })),
      )
      this.#replays.shift()
    }
  }

  async #pushOwn(counters: Counter[], signal: AbortSignal): Promise<void> {
    const complete = this.#complete()
    await this.#push({ ...this.#origin, counters, complete_until: startOfHour(complete) }, signal)
    this.#completeUntil = complete
  }

  /** @returns number of the hour before which nothing is open, of this start and of earlier ones */
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
      timeout: this.#timeout,
      signal,
      body: push,
    }).catch(async (cause: unknown) => {
      // To the second, which is better than nothing.
      if (cause instanceof ControlRejected && !clock.known) await clock.received(cause.date, requestedAt)
      throw cause
    })
    const { now } = await respondAs(UsageResponse, response)
    await clock.received(now, requestedAt)
    this.#reportedAt = elapsed()
    this.#outage.over()
  }
}
