// The only access to a tenant's data: statements in a caller's context, in one transaction and one round trip; a response
// of unlimited length takes several round trips.
import type { Readable } from 'node:stream'
import pg from 'pg'
import { contextSettings, type RlsContext } from '../tenancy/rls-context.ts'
import { RuntimeError } from '../errors.ts'
import type { Connections } from './connections.ts'
import { shareLookups, type Lookup } from './lookups.ts'
import { MessageTooLongError } from './message-guard.ts'
import { RoundTrip } from './round-trip.ts'
import { RowStream, type Frame } from './row-stream.ts'
import { sweepSession } from './session-sweep.ts'
import { SharedRoundTrips } from './shared-round-trips.ts'
import { sql, type Result, type ScopedStatements, type Statement } from './statement.ts'
import { StreamedRoundTrip } from './streamed-round-trip.ts'
import { RoundTripError, isStalePlan } from './round-trip-error.ts'

const setContext =
  "select set_config('app.tenant_id', $1, true), set_config('app.role', $2, true)," +
  " set_config('app.user_id', $3, true), set_config('request.jwt.claims', $4, true)"

interface HomeLogins {
  tenantId: string
  /** The URL of the runtime's login. */
  url: string
  /** The URL of the ddl login. */
  ddlUrl: string
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

  /** Runs statements that change nothing as `run` does. After a broken connection, they are repeated once on another. */
  read(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    return this.runTogether([{ context, statements }], { onlyReads: true })
  }

  /** Runs statements of several callers in one transaction, those of each part in its own context. */
  async runTogether(parts: readonly ScopedStatements[], { onlyReads = false } = {}): Promise<Result[]> {
    const scoped = parts.flatMap(({ context, statements }) => [this.#settingOf(context), ...statements])
    const results = await this.#roundTrip(scoped, (error, milliseconds) =>
      isWorthRepeating(error, milliseconds, onlyReads),
    )
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
   * time.
   * @throws the errors of `run`; RuntimeError DATABASE_BUSY when too many responses are being read
   */
  async stream(
    context: RlsContext,
    before: readonly Statement[],
    last: Statement,
    frame: Frame,
    signal: AbortSignal,
  ): Promise<StreamedResponse> {
    const leave = this.#connections.streams.take(this.#home.tenantId)
    const scoped = [this.#settingOf(context), ...before]
    try {
      const begun = performance.now()
      const { roundTrip, first, released } = await this.#beginStream(scoped, last, signal).catch((error: unknown) => {
        if (
          signal.aborted ||
          !(error instanceof RoundTripError) ||
          !isWorthRepeating(error, performance.now() - begun, false)
        )
          throw error
        return this.#beginStream(scoped, last, signal)
      })
      void released.then(leave)
      return {
        before: roundTrip.results.slice(1),
        body: new RowStream(roundTrip, first, frame, this.#connections.readingTime),
      }
    } catch (error) {
      leave()
      throw error
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
    const { roundTrip, first } = await this.#beginStream([this.#settingOf(context)], statement, signal, {
      isForeign: true,
      maxBytes,
    })
    const rows: string[] = []
    for (let chunk = first; chunk !== undefined; chunk = await roundTrip.next()) rows.push(...chunk)
    return rows
  }

  /** Runs the statements until the first rows are available. `released` settles when the connection is released. */
  async #beginStream(
    before: readonly Statement[],
    last: Statement,
    signal: AbortSignal,
    { isForeign = false, maxBytes = Infinity } = {},
  ) {
    signal.throwIfAborted()
    const login = { tenantId: this.#home.tenantId, url: this.#home.url }
    const connection = await this.#connections.acquire(login)
    const roundTrip = new StreamedRoundTrip(before, last, connection.prepared, maxBytes)
    const abort = () => roundTrip.cancel(signal.reason)
    signal.addEventListener('abort', abort)
    const released = roundTrip.done
      .then(
        () => true,
        (error: unknown) => error instanceof RoundTripError && error.reusable,
      )
      .then(async (reusable) => {
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

  #settingOf(context: RlsContext): Statement {
    return sql(setContext, ...contextSettings(this.#home.tenantId, context))
  }

  /**
   * Runs one round trip.
   * @param mayRepeat decides once, by the error and the time it took on its connection, whether the statements run again
   */
  async #roundTrip(
    statements: Statement[],
    mayRepeat: (error: RoundTripError, milliseconds: number) => boolean,
  ): Promise<Result[]> {
    const login = { tenantId: this.#home.tenantId, url: this.#home.url }
    const connection = await this.#connections.acquire(login)
    const begun = performance.now()
    let reusable = false
    try {
      const roundTrip = new RoundTrip(statements, connection.prepared)
      // node-postgres takes any object with `submit` and the handlers; its types name only `submit`.
      connection.client.query(roundTrip as unknown as pg.Submittable)
      const results = await roundTrip.done
      reusable = true
      return results
    } catch (error) {
      reusable = error instanceof RoundTripError && error.reusable
      if (!(error instanceof RoundTripError) || !mayRepeat(error, performance.now() - begun)) throw error
    } finally {
      if (reusable && statements.some(({ isForeign }) => isForeign === true)) {
        // Only the next user of the connection has to wait for the sweep.
        void sweepSession(connection).then((isClean) => this.#connections.release(login, connection, isClean))
      } else this.#connections.release(login, connection, reusable)
    }
    return this.#roundTrip(statements, () => false)
  }

  /**
   * Runs one transaction with the owner's rights, only for `POST /admin/reload-schemas`, on its own connection, which is
   * closed afterwards. The results of a reload are written with `asPublisher`. The transaction has the service context, so
   * that system collections can be read.
   * @throws RoundTripError for an error of Postgres or the connection that `work` does not handle
   */
  async withOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({
      connectionString: this.#home.ddlUrl,
      application_name: `tenantry:${this.#home.tenantId}:ddl`,
      connectionTimeoutMillis: 5_000,
      query_timeout: 60_000,
      options: '-c statement_timeout=60000 -c lock_timeout=3000 -c timezone=UTC -c datestyle=ISO',
    })
    const broken: Error[] = []
    client.on('error', (error) => broken.push(error))
    try {
      await client.connect()
    } catch (cause) {
      throw new RuntimeError('DATABASE_UNAVAILABLE', 'The database does not respond.', { cause })
    }
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

/** SQLSTATEs of a session that ends, or whose statement is cancelled. */
const endings = new Set(['57P01', '57P02', '57P05', '57014'])
/** A statement that has run longer may be the reason for the session's end. */
const briefMilliseconds = 1_000

/** Whether the statements had no effect or change nothing, and failed for a temporary reason. */
function isWorthRepeating(
  { undone, sqlstate, cause }: RoundTripError,
  milliseconds: number,
  onlyReads: boolean,
): boolean {
  if (isStalePlan(cause)) return true
  if (milliseconds > briefMilliseconds) return false
  if (cause instanceof MessageTooLongError) return false
  return (undone || onlyReads) && (sqlstate === undefined || endings.has(sqlstate))
}
