// Brings the counters to the control plane: each second what changed, cumulative, again and again until acknowledged.
import { internalPaths, internalTokenHeader, type UsagePush } from '@tenantry/contract'
import { pause } from '../pause.ts'
import type { CounterStore } from './counter-store.ts'
import type { Meter } from './meter.ts'

export interface UsagePusherOptions {
  controlUrl: string
  internalToken: string
  /** The gateway's stable name. */
  source: string
  /** Fresh for each start: the counters begin at zero with it. */
  boot: string
  store: CounterStore
  meter: Meter
  fetch: typeof globalThis.fetch
  onProblem?: (problem: Error) => void
  /** Milliseconds between two pushes; doubled after each failure, up to `slowest`. */
  interval?: number
  slowest?: number
  /** Milliseconds for one push; and for all of the last ones together. */
  timeout?: number
}

const countersPerPush = 2_000

export class UsagePusher {
  readonly #options: UsagePusherOptions
  readonly #interval: number
  readonly #slowest: number
  readonly #timeout: number

  constructor(options: UsagePusherOptions) {
    this.#options = options
    this.#interval = options.interval ?? 1_000
    this.#slowest = options.slowest ?? 15_000
    this.#timeout = options.timeout ?? 5_000
  }

  /** Pushes until aborted, then what is left, for as long as one push may take. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const isStopped = () => signal.aborted
    let delay = this.#interval
    while (!isStopped()) {
      await pause(delay, signal)
      if (isStopped()) break
      this.#options.meter.tick()
      delay = (await this.#drain(signal)) ? this.#interval : Math.min(delay * 2, this.#slowest)
      const lost = this.#options.store.enforceLimit()
      if (lost > 0) this.#options.onProblem?.(new Error(`${lost} counters were given up: too many wait for the control plane`))
    }
    await this.#drain(AbortSignal.timeout(this.#timeout))
  }

  /** @returns whether all that had changed was acknowledged */
  async #drain(signal: AbortSignal): Promise<boolean> {
    for (;;) {
      const cells = this.#options.store.take(countersPerPush)
      if (cells.length === 0) return true
      const counters = cells.map((cell) => ({ ...cell.key, value: cell.value }))
      try {
        await this.#push({ source: this.#options.source, boot: this.#options.boot, counters }, signal)
      } catch (cause) {
        this.#options.store.refused(cells)
        if (!signal.aborted) this.#options.onProblem?.(new Error('usage was not pushed', { cause }))
        return false
      }
      this.#options.store.acknowledge(counters, cells)
      // What changed during this push can wait for the next.
      if (cells.length < countersPerPush) return true
    }
  }

  async #push(push: UsagePush, signal: AbortSignal): Promise<void> {
    const { controlUrl, internalToken, fetch } = this.#options
    const response = await fetch(`${controlUrl}${internalPaths.usage}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [internalTokenHeader]: internalToken },
      body: JSON.stringify(push),
      signal: AbortSignal.any([signal, AbortSignal.timeout(this.#timeout)]),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the control plane answered ${response.status}`)
  }
}
