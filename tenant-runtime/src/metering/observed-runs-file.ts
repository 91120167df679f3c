// Keeps what the runtime has seen of runs over its restarts: a file of lines to which what is new is added, at most once a second.
import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissingFile, pause } from '@tenantry/contract'
import type { ObservedRuns } from './observed-runs.ts'

interface ObservedRunsFileOptions {
  path: string
  observed: ObservedRuns
  onError: (error: Error) => void
}

const intervalMilliseconds = 1_000
/** Beyond it, and twice what there is to say, the file is written anew. */
const smallestBytes = 1_000_000

export class ObservedRunsFile {
  readonly #options: ObservedRunsFileOptions
  /** Of the file, and when it was last written anew; undefined while it does not hold all that it should. */
  #bytes: number | undefined
  #wholeBytes = 0
  #isReported = false

  constructor(options: ObservedRunsFileOptions) {
    this.#options = options
  }

  /** Goes on from what is there. A missing file is an empty one; of a torn one all whole lines count. Never throws. */
  async load(): Promise<void> {
    const { path, observed, onError } = this.#options
    try {
      const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
      const unreadable = observed.load(lines)
      if (unreadable > 0)
        onError(new Error(`${unreadable} of ${lines.length} lines about functions' runs could not be read`))
    } catch (cause) {
      if (!isMissingFile(cause)) onError(new Error("what was seen of functions' runs could not be read", { cause }))
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
    const { path, observed, onError } = this.#options
    const changes = textOf(observed.changes())
    const bytes = this.#bytes
    if (bytes !== undefined && changes === '') return
    try {
      // Until it has ended nobody knows how much of it is there.
      this.#bytes = undefined
      if (bytes !== undefined && bytes + changes.length <= Math.max(smallestBytes, 2 * this.#wholeBytes)) {
        await appendFile(path, changes, { mode: 0o600 })
        this.#bytes = bytes + changes.length
      } else await this.#rewrite()
      this.#isReported = false
    } catch (cause) {
      if (!this.#isReported) onError(new Error("what was seen of functions' runs could not be kept", { cause }))
      this.#isReported = true
    }
  }

  async #rewrite(): Promise<void> {
    const { path, observed } = this.#options
    const whole = textOf(observed.lines())
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
