// Runs several statements in one round trip: Bind and Execute for each, a single Sync for all. Postgres runs everything up
// to a Sync as one implicit transaction, so either all of it happens or nothing, and settings of `set_config(…, true)` end
// with it.
// node-postgres accepts such a sequence as a "submittable".
import pg from 'pg'
import { MessageTooLongError, maxMessageLength } from './message-guard.ts'
import type { PreparedStatements } from './prepared-statements.ts'
import { SentStatements } from './sent-statements.ts'
import type { Result, Statement } from './statement.ts'
import { RoundTripError } from './round-trip-error.ts'
import type { Wire } from './wire.ts'

export class RoundTrip {
  readonly done: Promise<Result[]>
  readonly #statements: readonly Statement[]
  readonly #sent: SentStatements
  #isSubmitted = false
  #wire: Wire | undefined
  /** The characters of rows that may still come. */
  #remaining = maxMessageLength
  #settle: { resolve: (results: Result[]) => void; reject: (error: RoundTripError) => void }

  constructor(statements: readonly Statement[], prepared: PreparedStatements) {
    this.#statements = statements
    this.#sent = new SentStatements(prepared)
    const { promise, resolve, reject } = Promise.withResolvers<Result[]>()
    this.done = promise
    this.#settle = { resolve, reject }
  }

  /** Ends the round trip, and closes its connection. */
  cancel(reason: unknown): void {
    this.#settle.reject(new RoundTripError(reason, { reusable: false, undone: false }))
    this.#wire?.stream.destroy()
  }

  submit(wire: Wire): Error | null {
    this.#isSubmitted = true
    this.#wire = wire
    wire.stream.cork()
    try {
      this.#sent.begin(wire)
      for (const statement of this.#statements) this.#sent.send(wire, statement)
    } finally {
      // Without a Sync the connection would wait for ever after an error above.
      wire.sync()
      wire.stream.uncork()
    }
    return null
  }

  handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#sent.described(message.fields)
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    for (const text of fields) if (text !== null) this.#remaining -= text.length
    if (this.#remaining >= 0) {
      this.#sent.row(fields)
      return
    }
    // Rows are no longer stored. Postgres ends the query when it cannot send them.
    const error = new MessageTooLongError(`The rows of a round trip have more than ${maxMessageLength} characters.`)
    this.#settle.reject(new RoundTripError(error, { reusable: false, undone: false }))
    this.#wire?.stream.destroy()
  }

  handleCommandComplete(message: { text: string }): void {
    this.#sent.completed(message.text)
  }

  handleEmptyQuery(): void {
    this.#sent.completed('')
  }

  handlePortalSuspended(): void {
    throw new Error('Postgres suspended a portal without a row limit.')
  }

  handleCopyInResponse(wire: Wire & { sendCopyFail(message: string): void }): void {
    wire.sendCopyFail('COPY is not supported here.')
  }

  handleCopyData(): void {
    // Rows of COPY … TO STDOUT, which none of our statements uses, are ignored.
  }

  handleReadyForQuery(): void {
    this.#settle.resolve(this.#sent.results)
  }

  /** Handles an error from Postgres, which sends ReadyForQuery unless it ends the session, or from a broken connection. */
  handleError(error: unknown, wire: Wire): void {
    this.#sent.failed(error)
    if (!(error instanceof pg.DatabaseError) || error.severity !== 'ERROR') {
      // Nothing was sent on a connection that was known to be broken. Postgres commits at the Sync, which it reads after
      // the last statement, so a session that ends before a statement's result never commits.
      const undone =
        !this.#isSubmitted || (error instanceof pg.DatabaseError && this.#sent.results.length < this.#statements.length)
      this.#settle.reject(new RoundTripError(error, { reusable: false, undone }))
      return
    }
    const ended = () => this.#settle.reject(new RoundTripError(error, { reusable: false, undone: true }))
    wire.once('end', ended)
    wire.once('readyForQuery', (message) => {
      wire.off('end', ended)
      this.#settle.reject(new RoundTripError(error, { reusable: message?.status === 'I', undone: true }))
    })
  }
}
