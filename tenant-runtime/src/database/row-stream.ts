// The rows of a streamed round trip as one text for an HTTP response, in chunks. Each chunk is fetched when the client has
// read the previous one, and the stream is cancelled when the client reads nothing for too long.
import { Readable } from 'node:stream'
import type { StreamedRoundTrip } from './streamed-round-trip.ts'

/** The texts around and between the rows: `[`, `,` and `]` make a JSON array of rows that are JSON. */
export interface Frame {
  begin: string
  between: string
  end: string
}

export interface ReadingTime {
  /** The maximum time without any progress of the reader. */
  stallMilliseconds: number
  /** The maximum time in total. */
  maxMilliseconds: number
}

/** The error of a response whose client reads too slowly. The response is cut off. */
export class SlowReaderError extends Error {}

export class RowStream extends Readable {
  readonly #roundTrip: StreamedRoundTrip
  readonly #frame: Frame
  readonly #stallMilliseconds: number
  readonly #end: NodeJS.Timeout
  #stall: NodeJS.Timeout
  #isFirst = true
  /** Rows that are already fetched. */
  #ahead: { rows: string[] | undefined } | undefined

  /** Creates the stream. `first` is the result of the round trip's first `next`. */
  constructor(
    roundTrip: StreamedRoundTrip,
    first: string[] | undefined,
    frame: Frame,
    { stallMilliseconds, maxMilliseconds }: ReadingTime,
  ) {
    // Texts are pushed unchanged, because buffers of them would leave megabytes to the garbage collector.
    super({ encoding: 'utf8' })
    this.#roundTrip = roundTrip
    this.#frame = frame
    this.#ahead = { rows: first }
    this.#stallMilliseconds = stallMilliseconds
    this.#end = setTimeout(
      () => this.destroy(new SlowReaderError('The client did not read the response in time.')),
      maxMilliseconds,
    )
    this.#stall = this.#awaitReader()
    // Readers receive errors. Without a reader, an error must not end the process.
    this.on('error', () => undefined)
    // Reported even while no reader has called `next`.
    roundTrip.done.catch((error: unknown) => this.#fail(error))
  }

  #awaitReader(): NodeJS.Timeout {
    return setTimeout(
      () => this.destroy(new SlowReaderError('The client read nothing of the response for too long.')),
      this.#stallMilliseconds,
    )
  }

  override _read(): void {
    clearTimeout(this.#stall)
    const ahead = this.#ahead
    this.#ahead = undefined
    if (ahead !== undefined) {
      this.#pushRows(ahead.rows)
      return
    }
    this.#roundTrip.next().then(
      (rows) => this.#pushRows(rows),
      (error: unknown) => this.#fail(error),
    )
  }

  #fail(error: unknown): void {
    this.destroy(error instanceof Error ? error : new Error('The rows ended with an error.', { cause: error }))
  }

  #pushRows(rows: string[] | undefined): void {
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
    // A round trip that has ended ignores this.
    this.#roundTrip.cancel(error ?? new Error('The response is no longer needed.'))
    done(error)
  }
}
