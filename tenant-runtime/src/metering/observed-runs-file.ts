// Persists observed runs across restarts: a file of lines to which changes are appended.
import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissingFile } from '@tenantry/contract'
import type { ObservedRuns } from './observed-runs.ts'

interface ObservedRunsFileOptions {
  path: string
  observed: ObservedRuns
  onError: (error: Error) => void
}

/** The file is rewritten when it exceeds this size and twice its last complete content. */
const minRewriteBytes = 1_000_000

export class ObservedRunsFile {
  readonly #options: ObservedRunsFileOptions
  /** The size of the file, undefined while it does not have all content; and its size after the last rewrite. */
  #bytes: number | undefined
  #wholeBytes = 0
  #isReported = false

  constructor(options: ObservedRunsFileOptions) {
    this.#options = options
  }

  /** Loads the file. A missing file counts as empty, and all whole lines of a torn one count. Never throws. */
  async load(): Promise<void> {
    const { path, observed, onError } = this.#options
    try {
      const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
      const unreadable = observed.load(lines)
      if (unreadable > 0)
        onError(new Error(`${unreadable} of ${lines.length} lines of observed runs could not be read.`))
    } catch (cause) {
      if (!isMissingFile(cause)) onError(new Error('The observed runs could not be read.', { cause }))
    }
  }

  /**
   * Writes the changes, or all content when the file is incomplete or has grown too much. A failed write is retried the
   * next time.
   */
  async save(): Promise<void> {
    const { path, observed, onError } = this.#options
    const changes = textOf(observed.changes())
    const bytes = this.#bytes
    if (bytes !== undefined && changes === '') return
    try {
      // Until the write has ended, it is unknown how much of it the file has.
      this.#bytes = undefined
      if (bytes !== undefined && bytes + changes.length <= Math.max(minRewriteBytes, 2 * this.#wholeBytes)) {
        await appendFile(path, changes, { mode: 0o600 })
        this.#bytes = bytes + changes.length
      } else await this.#rewrite()
      this.#isReported = false
    } catch (cause) {
      if (!this.#isReported) onError(new Error('The observed runs could not be stored.', { cause }))
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
