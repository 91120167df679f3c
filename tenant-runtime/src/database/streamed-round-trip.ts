// A transaction whose last statement's rows are fetched in chunks, as the caller requests them. Its portal runs for some
// rows and is suspended until the next Execute. The Sync, which ends the implicit transaction and with it all settings of
// `set_config(…, true)`, is sent after the last row.
import pg from 'pg'
import { MessageTooLongError } from './message-guard.ts'
import type { PreparedStatements } from './prepared-statements.ts'
import { SentStatements } from './sent-statements.ts'
import { sql, type Result, type Statement } from './statement.ts'
import { RoundTripError } from './round-trip-error.ts'
import type { Wire } from './wire.ts'

const portal = 'rows'
/** The size of a chunk. Further bytes from Postgres wait in the sockets' buffers. */
const chunkBytes = 128 * 1024
/** The number of rows of the first fetch. Later ones fetch what fits a chunk, by the size of the rows before. */
const firstRows = 64
const maxRows = 2_000

/**
 * A statement that follows each fetch, because the end of a statement stops Postgres' clock of the statement timeout.
 * Otherwise the clock would run while the portal is suspended, and end the query of a slow reader instead of a slow query.
 */
const stopClock = sql('select where false')

export class StreamedRoundTrip {
  /**
   * Resolves when the transaction is committed.
   * @throws RoundTripError that states whether the connection is clean
   */
  readonly done: Promise<void>
  readonly #before: readonly Statement[]
  readonly #last: Statement
  readonly #sent: SentStatements
  readonly #settle: { resolve: () => void; reject: (error: RoundTripError) => void }
  #wire: Wire | undefined
  /** The state of the whole round trip: `ending` after the Sync. */
  #state: 'executing' | 'suspended' | 'ending' | 'over' = 'executing'
  /** The state of the last statement's portal, while the messages after its Execute are in progress. */
  #portal: 'running' | 'suspended' | 'ended' = 'running'
  #hasBeenSuspended = false
  #failure: RoundTripError | undefined
  #waiting: { resolve: (rows: string[] | undefined) => void; reject: (error: RoundTripError) => void } | undefined
  #rows: string[] = []
  #bytes = 0
  #isPaused = false
  #fetch = { max: firstRows, rows: 0, bytes: 0 }
  /** The number of bytes that may still come. */
  #remainingBytes: number
  readonly #onTake: () => void

  /**
   * Creates the round trip.
   * @param last the statement with a single column of text
   * @param options.maxBytes the size of its rows above which nothing is committed
   * @param options.onTake called when the caller takes the rows that have arrived
   */
  constructor(
    before: readonly Statement[],
    last: Statement,
    prepared: PreparedStatements,
    { maxBytes = Infinity, onTake = () => undefined }: { maxBytes?: number; onTake?: () => void } = {},
  ) {
    this.#remainingBytes = maxBytes
    this.#onTake = onTake
    this.#before = before
    this.#last = last
    this.#sent = new SentStatements(prepared)
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.done = promise
    this.#settle = { resolve: () => resolve(undefined), reject }
  }

  /** The results of the statements before the last, complete when the first rows are available. */
  get results(): readonly Result[] {
    return this.#sent.results
  }

  /**
   * Returns some more rows; undefined when none remain and the transaction is committed. One call at a time.
   * @throws RoundTripError as `done` does
   */
  next(): Promise<string[] | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      if (this.#isPaused) this.#resume()
      this.#serve()
    })
  }

  /** Cancels the round trip: closes the connection, which undoes everything. */
  cancel(reason: unknown): void {
    this.#fail(new RoundTripError(reason, { reusable: false, undone: false }))
  }

  submit(wire: Wire): Error | null {
    this.#wire = wire
    wire.stream.cork()
    this.#sent.begin(wire)
    for (const statement of this.#before) this.#sent.send(wire, statement)
    this.#sent.open(wire, this.#last, portal)
    this.#execute(wire)
    wire.stream.uncork()
    return null
  }

  #fetchMore(): void {
    const wire = this.#wire
    if (wire === undefined) return
    this.#state = 'executing'
    this.#portal = 'running'
    const { max, rows, bytes } = this.#fetch
    const fitting = Math.floor((chunkBytes * rows) / Math.max(1, bytes))
    this.#fetch = { max: Math.max(1, Math.min(fitting, 8 * max, maxRows)), rows: 0, bytes: 0 }
    wire.stream.cork()
    this.#execute(wire)
    wire.stream.uncork()
  }

  #execute(wire: Wire): void {
    wire.execute({ portal, rows: this.#fetch.max })
    this.#sent.open(wire, stopClock, '')
    wire.execute({ portal: '' })
    wire.flush()
  }

  #resume(): void {
    this.#isPaused = false
    this.#wire?.stream.resume()
  }

  #serve(): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (this.#failure !== undefined) waiting.reject(this.#failure)
    else if (this.#rows.length > 0 && (this.#bytes >= chunkBytes || this.#state !== 'executing'))
      waiting.resolve(this.#take())
    else if (this.#state === 'over') waiting.resolve(undefined)
    else {
      if (this.#state === 'suspended') this.#fetchMore()
      return
    }
    this.#waiting = undefined
  }

  #take(): string[] {
    const rows = this.#rows
    this.#rows = []
    this.#bytes = 0
    this.#onTake()
    return rows
  }

  get #isBefore(): boolean {
    return this.#sent.results.length < this.#before.length
  }

  handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#sent.described(message.fields)
  }

  handleDataRow(message: { fields: (string | null)[] }): void {
    if (this.#isBefore) {
      this.#sent.row(message.fields)
      return
    }
    const text = message.fields[0] ?? ''
    if (this.#remainingBytes !== Infinity && (this.#remainingBytes -= Buffer.byteLength(text) + 1) < 0) {
      // This is before the Sync, without which nothing is committed.
      this.#fail(
        new RoundTripError(new MessageTooLongError('The rows exceed the maximum size.'), {
          reusable: false,
          undone: true,
        }),
      )
      return
    }
    this.#rows.push(text)
    this.#bytes += text.length
    this.#fetch.rows++
    this.#fetch.bytes += text.length
    if (this.#bytes < chunkBytes) return
    this.#isPaused = true
    this.#wire?.stream.pause()
    this.#serve()
  }

  handlePortalSuspended(): void {
    this.#portal = 'suspended'
  }

  handleCommandComplete(message: { text: string }, wire: Wire): void {
    if (this.#isBefore) this.#sent.completed(message.text)
    else if (this.#portal === 'running') this.#end(wire)
    else if (this.#portal === 'suspended') this.#suspend()
  }

  handleEmptyQuery(wire: Wire): void {
    this.handleCommandComplete({ text: '' }, wire)
  }

  #end(wire: Wire): void {
    this.#portal = 'ended'
    this.#state = 'ending'
    wire.sync()
    this.#serve()
  }

  #suspend(): void {
    this.#state = 'suspended'
    this.#hasBeenSuspended = true
    this.#serve()
  }

  handleCopyInResponse(wire: Wire & { sendCopyFail(message: string): void }): void {
    wire.sendCopyFail('COPY is not supported here.')
  }

  handleCopyData(): void {
    // Rows of COPY … TO STDOUT, which none of our statements uses, are ignored.
  }

  handleReadyForQuery(): void {
    if (this.#state !== 'ending') return
    this.#state = 'over'
    this.#settle.resolve()
    this.#serve()
  }

  /** Handles an error from Postgres or from a broken connection. */
  handleError(error: unknown, wire: Wire): void {
    if (this.#state === 'over') return
    this.#sent.failed(error, this.#isBefore ? undefined : this.#last)
    // After a suspension, Postgres may send more than the response to the last message.
    if (!(error instanceof pg.DatabaseError) || error.severity !== 'ERROR' || this.#hasBeenSuspended) {
      // Without the Sync nothing is committed, however the connection ends.
      this.#fail(new RoundTripError(error, { reusable: false, undone: this.#state !== 'ending' }))
      return
    }
    if (this.#state !== 'ending') wire.sync()
    this.#state = 'ending'
    this.#resume()
    const ended = () => this.#fail(new RoundTripError(error, { reusable: false, undone: true }))
    wire.once('end', ended)
    wire.once('readyForQuery', (message) => {
      wire.off('end', ended)
      this.#fail(new RoundTripError(error, { reusable: message?.status === 'I', undone: true }))
    })
  }

  #fail(error: RoundTripError): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#failure = error
    this.#take()
    if (!error.reusable) this.#wire?.stream.destroy()
    this.#settle.reject(error)
    this.#serve()
  }
}
