// The control plane's clock, as its answers tell it: hours are its hours, whatever this machine's clock says. Between
// answers it runs by the monotonic clock; over a restart, and while nobody answers, by what was last known of the difference.
import { readFile, rename, writeFile } from 'node:fs/promises'

interface ControlClockOptions {
  /** This machine's, milliseconds since 1970. */
  now: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** Keeps the difference. */
  file: string
  onError: (error: Error) => void
}

/** An answer's own delay is no news; milliseconds. */
const tolerance = 50
/** The difference is written down when it has changed by more; milliseconds. */
const worthStoring = 1_000

export class ControlClock {
  readonly #options: ControlClockOptions
  /** The control plane's time when `elapsed` was 0. */
  #base: number
  #last = 0
  #known = false
  readonly #firstKnown = Promise.withResolvers<undefined>()
  /** By how much this machine's clock is behind, as it stands in the file. */
  #stored: number | undefined

  constructor(options: ControlClockOptions) {
    this.#options = options
    this.#base = options.now() - options.elapsed()
  }

  /** Whether the control plane was ever heard, by this start or one before. */
  get known(): boolean {
    return this.#known
  }

  get onceKnown(): Promise<undefined> {
    return this.#firstKnown.promise
  }

  /** Milliseconds since 1970. Never goes back. */
  readonly now = (): number => {
    this.#last = Math.max(this.#last, this.#base + this.#options.elapsed())
    return this.#last
  }

  /** What an earlier start has kept. */
  async load(): Promise<void> {
    const { file, now, elapsed, onError } = this.#options
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) return
    const behind = readBehind(text)
    if (behind === undefined) {
      onError(new Error("what was kept of the control plane's clock can not be read"))
      return
    }
    this.#stored = behind
    this.#set(now() - elapsed() + behind)
  }

  /**
   * @param controlNow ISO 8601, from an answer
   * @param requestedAt `elapsed` when the question was sent
   */
  async received(controlNow: string, requestedAt: number): Promise<void> {
    const { now, elapsed } = this.#options
    const half = (elapsed() - requestedAt) / 2
    const base = Date.parse(controlNow) - (requestedAt + half)
    if (Number.isNaN(base)) return
    if (!this.#known || Math.abs(base - this.#base) > half + tolerance) this.#set(base)
    const behind = Math.round(this.#base + elapsed() - now())
    if (this.#stored === undefined || Math.abs(behind - this.#stored) > worthStoring) await this.#keep(behind)
  }

  #set(base: number): void {
    // Until now nobody went by it.
    if (!this.#known) this.#last = 0
    this.#known = true
    this.#firstKnown.resolve(undefined)
    this.#base = base
  }

  async #keep(behind: number): Promise<void> {
    const { file, onError } = this.#options
    this.#stored = behind
    try {
      await writeFile(`${file}.new`, JSON.stringify({ behind_milliseconds: behind }))
      await rename(`${file}.new`, file)
    } catch (cause) {
      onError(new Error("the difference to the control plane's clock was not kept", { cause }))
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
