// The rows of a streamed trip as one text for an HTTP answer, in pieces: each is fetched when the client has taken the one
// before, and all is given up when it takes nothing for too long.
import { Readable } from 'node:stream'
import type { StreamedRoundTrip } from './streamed-round-trip.ts'

/** What stands around the rows and between them: `[`, `,` and `]` make a JSON array of rows that are JSON. */
export interface Frame {
  begin: string
  between: string
  end: string
}

export interface ReadingTime {
  /** The longest time without the reader's taking anything. */
  stallMilliseconds: number
  /** The longest time in all. */
  maxMilliseconds: number
}

/** Told to whoever writes the answer, which is cut off. */
export class SlowReader extends Error {}

export class RowStream extends Readable {
  readonly #roundTrip: StreamedRoundTrip
  readonly #frame: Frame
  readonly #stallMilliseconds: number
  readonly #end: NodeJS.Timeout
  #stall: NodeJS.Timeout
  #isFirst = true
  /** Fetched already. */
  #ahead: { rows: string[] | undefined } | undefined

  /** `first` is what the trip's first `next` has given. */
  constructor(
    roundTrip: StreamedRoundTrip,
    first: string[] | undefined,
    frame: Frame,
    { stallMilliseconds, maxMilliseconds }: ReadingTime,
  ) {
    // Texts as they are: of buffers made of them, megabytes would wait for the garbage collector.
    super({ encoding: 'utf8' })
    this.#roundTrip = roundTrip
    this.#frame = frame
    this.#ahead = { rows: first }
    this.#stallMilliseconds = stallMilliseconds
    this.#end = setTimeout(() => this.destroy(new SlowReader('the answer was not read in time')), maxMilliseconds)
    this.#stall = this.#awaitReader()
    // Who reads is told of errors; as long as nobody does, they must not end the process.
    this.on('error', () => undefined)
    // Also while nobody reads.
    roundTrip.done.catch((error: unknown) => this.#fail(error))
  }

  #awaitReader(): NodeJS.Timeout {
    return setTimeout(
      () => this.destroy(new SlowReader('nothing of the answer was read for too long')),
      this.#stallMilliseconds,
    )
  }

  override _read(): void {
    clearTimeout(this.#stall)
    const ahead = this.#ahead
    this.#ahead = undefined
    if (ahead !== undefined) {
      this.#show(ahead.rows)
      return
    }
    this.#roundTrip.next().then(
      (rows) => this.#show(rows),
      (error: unknown) => this.#fail(error),
    )
  }

  #fail(error: unknown): void {
    this.destroy(error instanceof Error ? error : new Error('the rows ended', { cause: error }))
  }

  #show(rows: string[] | undefined): void {
    if (this.destroyed) return
    const { begin, between, end } = this.#frame
    const before = this.#isFirst ? begin : rows === undefined ? '' : between
    this.#isFirst = false
    if (rows === undefined) {
      this.push(before + end)
      this.push(null)
      return
    }
    this.#stall = this.#awaitReader()
    this.push(before + rows.join(between))
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#stall)
    clearTimeout(this.#end)
    // Nothing happens to a trip that has come to its end.
    this.#roundTrip.cancel(error ?? new Error('the answer is not wanted any more'))
    done(error)
  }
}
