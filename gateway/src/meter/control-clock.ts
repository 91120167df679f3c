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
  onProblem: (problem: Error) => void
}

/** An answer's own delay is no news; milliseconds. */
const tolerance = 50
/** The difference is written down when it has changed by more; milliseconds. */
const worthKeeping = 1_000

export class ControlClock {
  readonly #options: ControlClockOptions
  /** The control plane's time when `elapsed` was 0. */
  #base: number
  #last = 0
  #known = false
  readonly #firstKnown = Promise.withResolvers<undefined>()
  /** By how much this machine's clock is behind, as it stands in the file. */
  #kept: number | undefined

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
    const { file, now, elapsed, onProblem } = this.#options
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) return
    const behind = readBehind(text)
    if (behind === undefined) {
      onProblem(new Error("what was kept of the control plane's clock can not be read"))
      return
    }
    this.#kept = behind
    this.#set(now() - elapsed() + behind)
  }

  /**
   * @param controlNow ISO 8601, from an answer
   * @param askedAt `elapsed` when the question was sent
   */
  async heard(controlNow: string, askedAt: number): Promise<void> {
    const { now, elapsed } = this.#options
    const half = (elapsed() - askedAt) / 2
    const base = Date.parse(controlNow) - (askedAt + half)
    if (Number.isNaN(base)) return
    if (!this.#known || Math.abs(base - this.#base) > half + tolerance) this.#set(base)
    const behind = Math.round(this.#base + elapsed() - now())
    if (this.#kept === undefined || Math.abs(behind - this.#kept) > worthKeeping) await this.#keep(behind)
  }

  #set(base: number): void {
    // Until now nobody went by it.
    if (!this.#known) this.#last = 0
    this.#known = true
    this.#firstKnown.resolve(undefined)
    this.#base = base
  }

  async #keep(behind: number): Promise<void> {
    const { file, onProblem } = this.#options
    this.#kept = behind
    try {
      await writeFile(`${file}.new`, JSON.stringify({ behind_milliseconds: behind }))
      await rename(`${file}.new`, file)
    } catch (cause) {
      onProblem(new Error("the difference to the control plane's clock was not kept", { cause }))
    }
  }
}

function readBehind(text: string): number | undefined {
  try {
    const kept: unknown = JSON.parse(text)
    if (typeof kept !== 'object' || kept === null || !('behind_milliseconds' in kept)) return undefined
    return Number.isSafeInteger(kept.behind_milliseconds) ? Number(kept.behind_milliseconds) : undefined
  } catch {
    return undefined
  }
}
