// The counters of this start on disk: each before its response ends, all changes of one turn of the event loop in one
// write, synced each second. A new segment begins each hour with the open counters.
import { writeSync } from 'node:fs'
import { mkdir, open, unlink, type FileHandle } from 'node:fs/promises'
import { hourMilliseconds, pause, syncDirectory } from '@tenantry/contract'
import type { Cell, CounterStore } from '../counter-store.ts'
import { segmentFile } from './replay.ts'
import { FrameWriter, type Origin } from './segment.ts'

interface JournalOptions extends Origin {
  /** The journal's own directory, which is created when it does not exist. */
  directory: string
  store: CounterStore
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onError: (error: Error) => void
  /** The size of a segment in bytes after which the next one begins. */
  segmentBytes?: number
  /** Milliseconds between two syncs. */
  interval?: number
}

/** The number of cells of a segment's initial state that are written in one turn of the event loop. */
const cellsPerTurn = 1_000

export class Journal {
  readonly #options: JournalOptions
  readonly #segmentBytes: number
  readonly #frame = new FrameWriter()
  /** Undefined while nothing can be written and counts are only in memory. */
  #handle: FileHandle | undefined
  #segment = 0
  #openedAt = 0
  #size = 0
  #cells = 0
  #unsynced = false
  /** Earlier segments, which are needed until this one has all open counters. */
  #older: string[] = []
  #state: Cell[] = []
  #stateBytes = 0
  #waiting: (() => void)[] = []
  #scheduled = false
  #isFailing = false
  readonly #turn = () => this.#endOfTurn()

  constructor(options: JournalOptions) {
    this.#options = options
    this.#segmentBytes = options.segmentBytes ?? 8 * 1024 * 1024
    options.store.onUnwritten(() => this.#schedule())
  }

  /** Calls the function after the write of this turn, or at once when nothing waits for a write. */
  readonly whenWritten = (next: () => void): void => {
    if (this.#scheduled) this.#waiting.push(next)
    else next()
  }

  /** Opens the first segment. Never throws: a gateway that cannot write its counts serves on and reports the error. */
  async start(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true, mode: 0o700 }).catch(() => undefined)
    await this.#begin()
  }

  /** Syncs and begins new segments until aborted. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const isStopped = () => signal.aborted
    while (!isStopped()) {
      await pause(this.#options.interval ?? 1_000, signal)
      await this.tick()
    }
  }

  /** Begins a new segment if necessary, and syncs. Runs each second. Never throws. */
  async tick(): Promise<void> {
    const isOver = this.#options.elapsed() - this.#openedAt >= hourMilliseconds
    const isFull = this.#size >= Math.max(this.#segmentBytes, 2 * this.#stateBytes)
    if (this.#handle === undefined || ((isOver || isFull) && this.#state.length === 0)) await this.#begin()
    try {
      await this.#sync()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  /**
   * Closes the journal.
   * @param isAcknowledged whether the control plane has all counts, so that no segment is needed
   */
  async close(isAcknowledged: boolean): Promise<void> {
    this.#endOfTurn()
    const handle = this.#handle
    this.#handle = undefined
    if (handle === undefined) return
    await handle.datasync().catch(this.#options.onError)
    await handle.close()
    if (!isAcknowledged) return
    this.#older.push(segmentFile(this.#options.directory, this.#options.boot, this.#segment))
    await this.#removeOlder()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#turn)
  }

  #endOfTurn(): void {
    this.#scheduled = false
    this.#write(this.#options.store.takeUnwritten())
    if (this.#state.length > 0) {
      this.#write(
        this.#state
          .splice(-cellsPerTurn)
          .filter((cell) => cell.segment !== this.#segment && cell.acknowledged < cell.value),
      )
      if (this.#state.length > 0) this.#schedule()
      else this.#stateBytes = this.#size
    }
    const waiting = this.#waiting
    if (waiting.length === 0) return
    this.#waiting = []
    for (const next of waiting) {
      try {
        next()
      } catch (cause) {
        this.#options.onError(new Error('The gateway failed to end a response.', { cause }))
      }
    }
  }

  #write(cells: readonly Cell[]): void {
    const { fd } = this.#handle ?? {}
    if (fd === undefined || cells.length === 0) return
    const frame = this.#frame
    frame.begin()
    for (const cell of cells) {
      if (cell.segment !== this.#segment) {
        cell.segment = this.#segment
        cell.number = this.#cells++
        frame.key(cell.number, cell.key)
      }
      frame.value(cell.number, cell.value)
    }
    this.#append(fd, frame.end())
  }

  #append(fd: number, bytes: Buffer): void {
    try {
      const written = writeSync(fd, bytes)
      if (written < bytes.length) throw new Error('The disk is full.')
      this.#size += written
      this.#unsynced = true
    } catch (cause) {
      this.#fail(cause)
    }
  }

  /** Ends the segment after a failed write, because a reader could not separate a torn frame from later ones. */
  #fail(cause: unknown): void {
    const handle = this.#handle
    const isWhole = this.#state.length === 0
    this.#handle = undefined
    this.#state = []
    if (handle !== undefined) {
      const file = segmentFile(this.#options.directory, this.#options.boot, this.#segment)
      if (isWhole) this.#older.push(file)
      // The older segments have more than this one, and writing it again would not help on a full disk.
      else unlink(file).catch(() => undefined)
      handle.close().catch(() => undefined)
    }
    if (this.#isFailing) return
    this.#isFailing = true
    this.#options.onError(new Error('The journal of counts cannot be written. Counts are only in memory.', { cause }))
  }

  async #begin(): Promise<void> {
    const { directory, boot, source, store, elapsed } = this.#options
    const file = segmentFile(directory, boot, this.#segment + 1)
    let handle: FileHandle
    try {
      handle = await open(file, 'w', 0o600)
    } catch (cause) {
      this.#failToBegin(cause)
      return
    }
    this.#frame.begin()
    this.#frame.origin({ source, boot })
    const head = this.#frame.end()
    try {
      if (writeSync(handle.fd, head) < head.length) throw new Error('The disk is full.')
    } catch (cause) {
      await handle.close().catch(() => undefined)
      await unlink(file).catch(() => undefined)
      this.#failToBegin(cause)
      return
    }
    const before = this.#handle
    if (before !== undefined) this.#older.push(segmentFile(directory, boot, this.#segment))
    this.#handle = handle
    this.#segment++
    this.#openedAt = elapsed()
    this.#size = head.length
    this.#cells = 0
    this.#unsynced = true
    this.#state = store.open()
    if (this.#state.length > 0) this.#schedule()
    // Until the state is written, only the previous segment has the last counts before this one.
    await before
      ?.datasync()
      .then(() => before.close())
      .catch(this.#options.onError)
    await syncDirectory(directory).catch(this.#options.onError)
  }

  /** Handles a segment that could not be begun. The previous one continues, if there is one. */
  #failToBegin(cause: unknown): void {
    if (this.#handle === undefined) this.#fail(cause)
  }

  async #sync(): Promise<void> {
    const handle = this.#handle
    if (handle === undefined) return
    const isWhole = this.#state.length === 0
    if (this.#unsynced) {
      this.#unsynced = false
      await handle.datasync()
    }
    if (!isWhole || handle !== this.#handle) return
    await this.#removeOlder()
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#options.onError(new Error('The journal of counts is written again.'))
  }

  async #removeOlder(): Promise<void> {
    const older = this.#older
    this.#older = []
    for (const file of older)
      await unlink(file).catch((cause: unknown) =>
        this.#options.onError(new Error('A journal could not be removed.', { cause })),
      )
  }
}
