// The counts of messages on disk: a file of lines. Counts are written before their messages leave the process, so that the end
// of the process loses none.
import { closeSync, fdatasync, fdatasyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { isMissingFile } from '@tenantry/contract'
import type { MessageCounts } from './message-counts.ts'

interface MessageJournalOptions {
  path: string
  counts: MessageCounts
  onError: (error: Error) => void
}

/** The file is rewritten when it exceeds this size and twice its last complete content. */
const minRewriteBytes = 1_000_000

const sync = promisify(fdatasync)

export class MessageJournal {
  readonly #options: MessageJournalOptions
  /** Undefined while the file does not have all content. */
  #file: number | undefined
  #bytes = 0
  #wholeBytes = 0
  #isSynced = true
  #isFailing = false

  constructor(options: MessageJournalOptions) {
    this.#options = options
  }

  /** Loads the file. A missing file counts as empty, and all whole lines of a torn one count. Never throws. */
  load(): void {
    const { path, counts, onError } = this.#options
    try {
      const lines = readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
      const unreadable = counts.load(lines)
      if (unreadable > 0)
        onError(new Error(`${unreadable} of ${lines.length} lines of realtime messages could not be read.`))
    } catch (cause) {
      if (!isMissingFile(cause)) onError(new Error('The counts of realtime messages could not be read.', { cause }))
    }
  }

  /** Writes what has changed. While it cannot be written, counts are only in memory. Never throws. */
  write(): void {
    const { counts } = this.#options
    if (!counts.hasChanges && !this.#isFailing) return
    const bytes = bytesOf(counts.changes())
    try {
      if (this.#file === undefined || this.#bytes + bytes.length > Math.max(minRewriteBytes, 2 * this.#wholeBytes))
        this.#rewrite()
      else {
        writeWhole(this.#file, bytes)
        this.#bytes += bytes.length
        this.#isSynced = false
      }
      this.#succeed()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  /** Syncs what was written. Never throws. */
  async sync(): Promise<void> {
    if (this.#isFailing) this.write()
    if (this.#file === undefined || this.#isSynced) return
    this.#isSynced = true
    // A rewrite closes the file, and syncs what replaces it.
    const file = this.#file
    await sync(file).catch((cause: unknown) => {
      if (file === this.#file) this.#fail(cause)
    })
  }

  close(): void {
    this.write()
    if (this.#file === undefined) return
    fdatasyncSync(this.#file)
    closeSync(this.#file)
    this.#file = undefined
  }

  #rewrite(): void {
    const { path, counts } = this.#options
    const whole = bytesOf(counts.lines())
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const file = openSync(`${path}.new`, 'w', 0o600)
    try {
      writeWhole(file, whole)
      fdatasyncSync(file)
      renameSync(`${path}.new`, path)
    } catch (error) {
      closeSync(file)
      throw error
    }
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = file
    this.#bytes = whole.length
    this.#wholeBytes = whole.length
    this.#isSynced = true
  }

  #succeed(): void {
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#options.onError(new Error('The counts of realtime messages are written again.'))
  }

  /** Ends the file after a failed write. The next write rewrites it. */
  #fail(cause: unknown): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
    if (this.#isFailing) return
    this.#isFailing = true
    this.#options.onError(new Error('The counts of realtime messages cannot be written.', { cause }))
  }
}

function bytesOf(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''))
}

function writeWhole(file: number, bytes: Buffer): void {
  if (writeSync(file, bytes) < bytes.length) throw new Error('The disk is full.')
}
