// The only access to a tenant's data: statements in a caller's context, in one transaction and one round trip; a response
// of unlimited length takes several round trips.
import type { Readable } from 'node:stream'
import pg from 'pg'
import type { ArrivingResult } from '../bounds/index.ts'
import { contextSettings, type RlsContext } from '../tenancy/rls-context.ts'
import { RuntimeError } from '../errors.ts'
import { notServed, type Connections } from './connections.ts'
import { shareLookups, type Lookup } from './lookups.ts'
import { MessageTooLongError } from './message-guard.ts'
import { RoundTrip } from './round-trip.ts'
import { RowStream, type Frame } from './row-stream.ts'
import { sweepSession } from './session-sweep.ts'
import { sessionOptions } from './session-settings.ts'
import { SharedRoundTrips } from './shared-round-trips.ts'
import { sql, type Result, type ScopedStatements, type Statement } from './statement.ts'
import { withValidPassword } from './valid-password.ts'
import { StreamedRoundTrip } from './streamed-round-trip.ts'
import { RoundTripError, isStalePlan } from './round-trip-error.ts'

const setContext =
  "select set_config('app.tenant_id', $1, true), set_config('app.role', $2, true)," +
  " set_config('app.user_id', $3, true), set_config('request.jwt.claims', $4, true)"

export interface HomeLogins {
  tenantId: string
  /** The URL of the runtime's login. This and the next one are empty once the runtime does not serve the tenant any more. */
  url: string
  /** The URL of the ddl login. */
  ddlUrl: string
  /** URLs of both logins with their other valid passwords, while these are rotated. */
  otherUrls?: readonly string[]
  otherDdlUrls?: readonly string[]
}

interface RoundTripOptions {
  onlyReads: boolean
  /** Whether all callers are anonymous. */
  isAnonymous: boolean
  /** The number of times that it may run again. */
  repeats: number
}

interface StreamOptions {
  /** The memory of the rows. */
  result: ArrivingResult
  /** Whether the caller keeps only the rows that it took last. */
  isTakenInParts?: boolean
  isForeign?: boolean
  maxBytes?: number
}

interface StreamedResponse {
  /** The results of the statements before the last. */
  before: Result[]
  /** The last statement's rows in their frame. The caller may destroy it to cancel the transaction. */
  body: Readable
}

export class ScopedDatabase {
  readonly #connections: Connections
  readonly #home: HomeLogins
  readonly #lookups = new SharedRoundTrips<Lookup, Result>(async (lookups) => {
    const { parts, distribute } = shareLookups(lookups)
    return distribute(await this.runTogether(parts, { onlyReads: true }))
  })

  /** @param home the logins, whose owner may replace the URLs while requests run */
  constructor(connections: Connections, home: HomeLogins) {
    this.#connections = connections
    this.#home = home
  }

  get tenantId(): string {
    return this.#home.tenantId
  }

  /**
   * Runs the statements in the caller's context as one transaction. Results have the order of the statements.
   * @throws RoundTripError with Postgres' SQLSTATE (map it with `databaseError`), RuntimeError when there is no connection
   */
  async run(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    return this.runTogether([{ context, statements }])
  }

  /** Runs statements that change nothing as `run` does. After a broken connection, they are repeated on another. */
  read(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    return this.runTogether([{ context, statements }], { onlyReads: true })
  }

  /** Runs statements of several callers in one transaction, those of each part in its own context. */
  async runTogether(parts: readonly ScopedStatements[], { onlyReads = false } = {}): Promise<Result[]> {
    const scoped = parts.flatMap(({ context, statements }) => [this.#settingOf(context), ...statements])
    const isAnonymous = parts.every(({ context }) => context.role === 'anon')
    const repeats = this.#connections.failoverMilliseconds > 0 ? failoverRepeats : 1
    const results = await this.#roundTrip(scoped, { onlyReads, isAnonymous, repeats })
    return results.filter((_, n) => scoped[n]?.text !== setContext)
  }

  /** Runs the statements as `run` does and rolls them back. The results are those of a real run. */
  async dryRun(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    const parts = [{ context, statements: [sql('begin'), ...statements, sql('rollback')] }]
    return (await this.runTogether(parts)).slice(1, -1)
  }

  /** Runs a single statement as `run` does. */
  async query(context: RlsContext, text: string, ...values: Statement['values'][number][]): Promise<Result> {
    const [result] = await this.run(context, sql(text, ...values))
    return result ?? { rows: [], count: 0 }
  }

  /** Runs one quick reading statement as `run` does, in a round trip shared with others that wait for one. */
  lookUp(context: RlsContext, statement: Statement): Promise<Result> {
    return this.#lookups.run({ context, statement })
  }

  /**
   * Runs statements as `run` does, with a response of unlimited length: the rows of `last`, which has a single column of
   * text, are fetched while `body` is read. Errors before the first row are thrown. A later error destroys `body`, whose
   * content is then incomplete. The transaction is committed only when `body` is read to its end. `signal` cancels at any
   * time, and must also abort when the client has received `body`, whose memory is reserved until then.
   * @param frame the frame of the rows, or a function that makes it from the results of `before`
   * @throws the errors of `run`; RuntimeError DATABASE_BUSY when too many responses are being read, TOO_MANY_BYTES or
   * SERVICE_BUSY when there is no memory for large rows
   */
  async stream(
    context: RlsContext,
    before: readonly Statement[],
    last: Statement,
    frame: Frame | ((before: readonly Result[]) => Frame),
    signal: AbortSignal,
  ): Promise<StreamedResponse> {
    const leave = this.#connections.streams.take(this.#home.tenantId)
    const scoped = [this.#settingOf(context), ...before]
    const result = this.#openResult(context.role === 'anon')
    signal.addEventListener('abort', () => result.release())
    const options = { result, isTakenInParts: true }
    try {
      const begun = performance.now()
      const { roundTrip, first, released } = await this.#beginStream(scoped, last, signal, options).catch(
        (error: unknown) => {
          if (
            signal.aborted ||
            !(error instanceof RoundTripError) ||
            !this.#isWorthRepeating(error, performance.now() - begun, false)
          )
            throw error
          return this.#beginStream(scoped, last, signal, options)
        },
      )
      void released.then(leave)
      const results = roundTrip.results.slice(1)
      const framed = typeof frame === 'function' ? frame(results) : frame
      return {
        before: results,
        body: new RowStream(roundTrip, first, framed, this.#connections.readingTime),
      }
    } catch (error) {
      leave()
      result.release()
      throw withoutRoom(error) ?? error
    }
  }

  /**
   * Runs a tenant's own statement, with rows of a single column of text. None of its effects stay in the session
   * (`session-sweep.ts`). More than `maxBytes` of rows undo it. `signal` cancels at any time. The transaction is committed
   * only when all rows are read.
   * @throws the errors of `run`
   */
  async queryForeign(
    context: RlsContext,
    statement: Statement,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<string[]> {
    const result = this.#openResult(context.role === 'anon')
    try {
      const { roundTrip, first } = await this.#beginStream([this.#settingOf(context)], statement, signal, {
        result,
        isForeign: true,
        maxBytes,
      })
      const rows: string[] = []
      for (let chunk = first; chunk !== undefined; chunk = await roundTrip.next()) rows.push(...chunk)
      return rows
    } catch (error) {
      throw withoutRoom(error) ?? error
    } finally {
      result.release()
    }
  }

  /** Runs the statements until the first rows are available. `released` settles when the connection is released. */
  async #beginStream(
    before: readonly Statement[],
    last: Statement,
    signal: AbortSignal,
    { result, isTakenInParts = false, isForeign = last.isForeign ?? false, maxBytes = Infinity }: StreamOptions,
  ) {
    signal.throwIfAborted()
    const login = this.#login()
    const connection = await this.#connections.acquire(login)
    let bytes = 0
    const onTake = () => {
      if (isTakenInParts) bytes = 0
    }
    const roundTrip = new StreamedRoundTrip(before, last, connection.prepared, { maxBytes, onTake })
    connection.guard.onRow = (more) => {
      bytes += more
      try {
        result.replace(bytes)
      } catch (error) {
        return Promise.reject(error instanceof Error ? error : new Error('There is no room.', { cause: error }))
      }
      return this.#turnOf(more)
    }
    const abort = () => roundTrip.cancel(signal.reason)
    signal.addEventListener('abort', abort)
    const released = roundTrip.done
      .then(
        () => true,
        (error: unknown) => error instanceof RoundTripError && error.reusable,
      )
      .then(async (reusable) => {
        connection.guard.onRow = undefined
        signal.removeEventListener('abort', abort)
        this.#connections.release(login, connection, reusable && (!isForeign || (await sweepSession(connection))))
      })
    try {
      if (signal.aborted) abort()
      else connection.client.query(roundTrip as unknown as pg.Submittable)
      return { roundTrip, first: await roundTrip.next(), released }
    } catch (error) {
      roundTrip.cancel(error)
      await released
      throw error
    }
  }

  /** Returns the runtime's login as it is now. */
  #login() {
    const { tenantId, url, otherUrls } = this.#home
    return { tenantId, url, otherUrls }
  }

  #settingOf(context: RlsContext): Statement {
    return sql(setContext, ...contextSettings(this.#home.tenantId, context))
  }

  /** Returns the wait for the turn of a row; undefined without one. */
  #turnOf(bytes: number): Promise<void> | undefined {
    return this.#connections.largeRows.begin(this.#home.tenantId, bytes)
  }

  #openResult(isAnonymous: boolean): ArrivingResult {
    return this.#connections.results.open({ tenantId: this.#home.tenantId, isAnonymous })
  }

  /** Whether the statements had no effect or change nothing, and failed for a temporary reason. */
  #isWorthRepeating({ undone, sqlstate, cause }: RoundTripError, milliseconds: number, onlyReads: boolean): boolean {
    if (isStalePlan(cause)) return true
    // A failover ends statements that have run for any time, but it cancels none.
    const failoverMilliseconds = sqlstate === cancelled ? 0 : this.#connections.failoverMilliseconds
    if (milliseconds > Math.max(briefMilliseconds, failoverMilliseconds)) return false
    if (cause instanceof MessageTooLongError || cause instanceof RuntimeError) return false
    return (undone || onlyReads) && (sqlstate === undefined || endings.has(sqlstate))
  }

  /** Runs one round trip, and repeats it if that is worth while. */
  async #roundTrip(statements: Statement[], { onlyReads, isAnonymous, repeats }: RoundTripOptions): Promise<Result[]> {
    const login = this.#login()
    const connection = await this.#connections.acquire(login)
    const begun = performance.now()
    let reusable = false
    const result = this.#openResult(isAnonymous)
    try {
      const roundTrip = new RoundTrip(statements, connection.prepared)
      connection.guard.onRow = (bytes) => {
        const room = result.add(bytes)
        return room === undefined ? this.#turnOf(bytes) : room.then(() => this.#turnOf(bytes))
      }
      // node-postgres takes any object with `submit` and the handlers; its types name only `submit`.
      connection.client.query(roundTrip as unknown as pg.Submittable)
      const results = await roundTrip.done
      reusable = true
      return results
    } catch (error) {
      reusable = error instanceof RoundTripError && error.reusable
      const full = withoutRoom(error)
      // Postgres may have committed a change whose rows were all on their way.
      if (full !== undefined) throw onlyReads ? full : unknownOutcome(full)
      if (
        repeats === 0 ||
        !(error instanceof RoundTripError) ||
        !this.#isWorthRepeating(error, performance.now() - begun, onlyReads)
      )
        throw error
    } finally {
      connection.guard.onRow = undefined
      result.release()
      if (reusable && statements.some(({ isForeign }) => isForeign === true)) {
        // Only the next user of the connection has to wait for the sweep.
        void sweepSession(connection).then((isClean) => this.#connections.release(login, connection, isClean))
      } else this.#connections.release(login, connection, reusable)
    }
    return this.#roundTrip(statements, { onlyReads, isAnonymous, repeats: repeats - 1 })
  }

  /**
   * Runs one transaction with the owner's rights, only for `POST /admin/reload-schemas`, on its own connection, which is
   * closed afterwards. The results of a reload are written with `asPublisher`. The transaction has the service context, so
   * that system collections can be read.
   * @throws RoundTripError for an error of Postgres or the connection that `work` does not handle
   */
  async withOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const { tenantId, ddlUrl, otherDdlUrls = [] } = this.#home
    if (ddlUrl === '') throw notServed()
    const broken: Error[] = []
    const client = await withValidPassword([ddlUrl, ...otherDdlUrls], async (connectionString) => {
      const opened = new pg.Client({
        connectionString,
        application_name: `tenantry:${tenantId}:ddl`,
        connectionTimeoutMillis: 5_000,
        query_timeout: 60_000,
        options: sessionOptions(
          { schema: tenantId, role: `${tenantId}_owner` },
          { statement_timeout: '60000', lock_timeout: '3000' },
        ),
      })
      opened.on('error', (error) => broken.push(error))
      await opened.connect()
      return opened
    }).catch((cause: unknown) => {
      throw new RuntimeError('DATABASE_UNAVAILABLE', 'The database does not respond.', { cause })
    })
    try {
      await client.query('begin')
      await client.query(setContext, contextSettings(this.#home.tenantId, { role: 'service', reason: 'schema reload' }))
      const result = await work(client)
      await client.query('commit')
      return result
    } catch (error) {
      throw broken.length > 0 || error instanceof pg.DatabaseError
        ? new RoundTripError(error, { reusable: false, undone: false })
        : error
    } finally {
      // Without a COMMIT, closing is the rollback.
      await client.end()
    }
  }
}

/** Returns the error of a round trip that ended because the memory for results had no room, or undefined. */
function withoutRoom(error: unknown): RuntimeError | undefined {
  return error instanceof RoundTripError && error.cause instanceof RuntimeError ? error.cause : undefined
}

function unknownOutcome(cause: RuntimeError): RuntimeError {
  return new RuntimeError(
    'SERVICE_BUSY',
    'There is no memory for the result of the change, which may have been made. Read the records before you retry.',
    { cause },
  )
}

/** The SQLSTATE of a cancelled statement. */
const cancelled = '57014'
/** SQLSTATEs of a session that ends, or whose statement is cancelled. */
const endings = new Set(['57P01', '57P02', '57P05', cancelled])
/** During a failover, the next session may end, too. */
const failoverRepeats = 3
/** A statement that has run longer may be the reason for the session's end. */
const briefMilliseconds = 1_000
