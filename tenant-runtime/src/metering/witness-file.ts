// Keeps what the runtime has seen of runs over its restarts: a file of lines to which what is new is added, at most once a second.
import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissingFile, pause } from '@tenantry/contract'
import type { RunWitness } from './run-witness.ts'

interface WitnessFileOptions {
  path: string
  witness: RunWitness
  onProblem: (problem: Error) => void
}

const intervalMilliseconds = 1_000
/** Beyond it, and twice what there is to say, the file is written anew. */
const smallestBytes = 1_000_000

export class WitnessFile {
  readonly #options: WitnessFileOptions
  /** Of the file, and when it was last written anew; undefined while it does not hold all that it should. */
  #bytes: number | undefined
  #wholeBytes = 0
  #isTold = false

  constructor(options: WitnessFileOptions) {
    this.#options = options
  }

  /** Goes on from what is there. A missing file is an empty one; of a torn one all whole lines count. Never throws. */
  async load(): Promise<void> {
    const { path, witness, onProblem } = this.#options
    try {
      const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
      const unreadable = witness.load(lines)
      if (unreadable > 0)
        onProblem(new Error(`${unreadable} of ${lines.length} lines about functions' runs could not be read`))
    } catch (cause) {
      if (!isMissingFile(cause)) onProblem(new Error("what was seen of functions' runs could not be read", { cause }))
    }
  }

  /** Writes until aborted, and once more then. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.save()
      await pause(intervalMilliseconds, signal)
    }
    await this.save()
  }

  /** What is new; all of it when the file is not whole, or has grown. What a full disk refuses is tried again the next time. */
  async save(): Promise<void> {
    const { path, witness, onProblem } = this.#options
    const news = textOf(witness.news())
    const bytes = this.#bytes
    if (bytes !== undefined && news === '') return
    try {
      // Until it has ended nobody knows how much of it is there.
      this.#bytes = undefined
      if (bytes !== undefined && bytes + news.length <= Math.max(smallestBytes, 2 * this.#wholeBytes)) {
        await appendFile(path, news, { mode: 0o600 })
        this.#bytes = bytes + news.length
      } else await this.#writeAnew()
      this.#isTold = false
    } catch (cause) {
      if (!this.#isTold) onProblem(new Error("what was seen of functions' runs could not be kept", { cause }))
      this.#isTold = true
    }
  }

  async #writeAnew(): Promise<void> {
    const { path, witness } = this.#options
    const whole = textOf(witness.lines())
    await mkdir(dirname(path), { recursive: true })
    await writeFile(`${path}.new`, whole, { mode: 0o600 })
    await rename(`${path}.new`, path)
    this.#bytes = whole.length
    this.#wholeBytes = whole.length
  }
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}
