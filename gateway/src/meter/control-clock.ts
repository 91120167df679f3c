// The control plane's clock as its responses report it. Hours are its hours, whatever this machine's clock shows. Between
// responses it follows the monotonic clock; after a restart and during an outage, the last known difference.
import { readFile, rename, writeFile } from 'node:fs/promises'

interface ControlClockOptions {
  /** Returns this machine's time in milliseconds since 1970. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** The path of the file that stores the difference. */
  file: string
  onError: (error: Error) => void
}

/** The milliseconds of difference that a response's own delay can explain. */
const toleranceMs = 50
/** The difference is stored when it has changed by more milliseconds than this. */
const minStoredChangeMs = 1_000

export class ControlClock {
  readonly #options: ControlClockOptions
  /** The control plane's time when `elapsed` was 0. */
  #base: number
  #last = 0
  #known = false
  readonly #firstKnown = Promise.withResolvers<undefined>()
  /** The stored number of milliseconds by which this machine's clock is behind. */
  #storedBehind: number | undefined

  constructor(options: ControlClockOptions) {
    this.#options = options
    this.#base = options.now() - options.elapsed()
  }

  /** Whether a time of the control plane was ever received, since this start or before. */
  get known(): boolean {
    return this.#known
  }

  get whenKnown(): Promise<undefined> {
    return this.#firstKnown.promise
  }

  /** Returns milliseconds since 1970, which never decrease. */
  readonly now = (): number => {
    this.#last = Math.max(this.#last, this.#base + this.#options.elapsed())
    return this.#last
  }

  /** Loads the difference that an earlier start stored. */
  async load(): Promise<void> {
    const { file, now, elapsed, onError } = this.#options
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) return
    const behind = readBehind(text)
    if (behind === undefined) {
      onError(new Error("The stored difference to the control plane's clock cannot be read."))
      return
    }
    this.#storedBehind = behind
    this.#set(now() - elapsed() + behind)
  }

  /**
   * Adjusts the clock to a response.
   * @param controlNow ISO 8601, from the response
   * @param requestedAt `elapsed` when the request was sent
   */
  async received(controlNow: string, requestedAt: number): Promise<void> {
    const { now, elapsed } = this.#options
    const half = (elapsed() - requestedAt) / 2
    const base = Date.parse(controlNow) - (requestedAt + half)
    if (Number.isNaN(base)) return
    if (!this.#known || Math.abs(base - this.#base) > half + toleranceMs) this.#set(base)
    const behind = Math.round(this.#base + elapsed() - now())
    if (this.#storedBehind === undefined || Math.abs(behind - this.#storedBehind) > minStoredChangeMs)
      await this.#store(behind)
  }

  #set(base: number): void {
    // No caller has used the clock until now, so it may go back.
    if (!this.#known) this.#last = 0
    this.#known = true
    this.#firstKnown.resolve(undefined)
    this.#base = base
  }

  async #store(behind: number): Promise<void> {
    const { file, onError } = this.#options
    this.#storedBehind = behind
    try {
      await writeFile(`${file}.new`, JSON.stringify({ behind_milliseconds: behind }))
      await rename(`${file}.new`, file)
    } catch (cause) {
      onError(new Error("The difference to the control plane's clock could not be stored.", { cause }))
    }
  }
}

function readBehind(text: string): number | undefined {
  try {
    const stored: unknown = JSON.parse(text)
    if (typeof stored !== 'object' || stored === null || !('behind_milliseconds' in stored)) return undefined
    return Number.isSafeInteger(stored.behind_milliseconds) ? Number(stored.behind_milliseconds) : undefined
  } catch {
    return undefined
  }
}
