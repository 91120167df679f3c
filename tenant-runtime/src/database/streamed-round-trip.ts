// A transaction whose last statement's rows are fetched piece by piece, as somebody asks for them: its portal runs for some
// rows and is suspended, and only then is there the next Execute. The Sync, which ends the implicit transaction and with it
// all that `set_config(…, true)` set, comes when the last row is there.
import pg from 'pg'
import { MessageTooLong } from './message-guard.ts'
import type { PreparedStatements } from './prepared-statements.ts'
import { SentStatements } from './sent-statements.ts'
import { sql, type Result, type Statement } from './statement.ts'
import { RoundTripError } from './round-trip-error.ts'
import type { Wire } from './wire.ts'

const portal = 'rows'
/** Of a piece; what Postgres sends beyond it waits in the sockets' buffers. */
const chunkBytes = 128 * 1024
/** Of the first fetch. Later ones fetch what a piece holds, by the size of the rows before. */
const firstRows = 64
const maxRows = 2_000

/**
 * Follows each fetch: with a statement that ends, Postgres' clock for the statement's timeout is stopped. It would run on
 * while the portal is suspended, and then hit whoever reads slowly rather than a query that is slow.
 */
const stopClock = sql('select where false')

export class StreamedRoundTrip {
  /** Resolves when the transaction is committed. @throws TripError that says whether the connection is clean */
  readonly done: Promise<void>
  readonly #before: readonly Statement[]
  readonly #last: Statement
  readonly #sent: SentStatements
  readonly #settle: { resolve: () => void; reject: (error: RoundTripError) => void }
  #wire: Wire | undefined
  /** Of the whole trip: `ending` from the Sync on. */
  #state: 'executing' | 'suspended' | 'ending' | 'over' = 'executing'
  /** Of the last statement, while what follows its Execute is still under way. */
  #portal: 'running' | 'suspended' | 'ended' = 'running'
  #hasBeenSuspended = false
  #failure: RoundTripError | undefined
  #waiting: { resolve: (rows: string[] | undefined) => void; reject: (error: RoundTripError) => void } | undefined
  #rows: string[] = []
  #bytes = 0
  #isPaused = false
  #fetch = { most: firstRows, rows: 0, bytes: 0 }
  /** Bytes that may still come. */
  #room: number

  /** `last` has a single column, of text. Of more than `maxBytes` nothing is committed. */
  constructor(before: readonly Statement[], last: Statement, prepared: PreparedStatements, maxBytes = Infinity) {
    this.#room = maxBytes
    this.#before = before
    this.#last = last
    this.#sent = new SentStatements(prepared)
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.done = promise
    this.#settle = { resolve: () => resolve(undefined), reject }
  }

  /** Of the statements before the last: complete when the first rows are there. */
  get results(): readonly Result[] {
    return this.#sent.results
  }

  /**
   * Some more rows; undefined when there are none left and the transaction is committed. One call at a time.
   * @throws TripError as `done` does
   */
  next(): Promise<string[] | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      if (this.#isPaused) this.#resume()
      this.#serve()
    })
  }

  /** Gives up: the connection is closed, which undoes everything. */
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
    const { most: max, rows, bytes } = this.#fetch
    const fitting = Math.floor((chunkBytes * rows) / Math.max(1, bytes))
    this.#fetch = { most: Math.max(1, Math.min(fitting, 8 * max, maxRows)), rows: 0, bytes: 0 }
    wire.stream.cork()
    this.#execute(wire)
    wire.stream.uncork()
  }

  #execute(wire: Wire): void {
    wire.execute({ portal, rows: this.#fetch.most })
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
    if (this.#room !== Infinity && (this.#room -= Buffer.byteLength(text) + 1) < 0) {
      // Before the Sync, without which nothing is committed.
      this.#fail(
        new RoundTripError(new MessageTooLong('the rows are more than are taken'), { reusable: false, undone: true }),
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
    wire.sendCopyFail('COPY is not offered here')
  }

  handleCopyData(): void {
    // Rows of COPY … TO STDOUT, which no statement of ours uses, are of no interest.
  }

  handleReadyForQuery(): void {
    if (this.#state !== 'ending') return
    this.#state = 'over'
    this.#settle.resolve()
    this.#serve()
  }

  /** From Postgres, or from a connection that broke. */
  handleError(error: unknown, wire: Wire): void {
    if (this.#state === 'over') return
    this.#sent.failed(error, this.#isBefore ? undefined : this.#last)
    // Once Postgres has waited for us, it may have more to say than the answer to what was sent last.
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
