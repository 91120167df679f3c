// The only way to a tenant's data: statements in a caller's context, one transaction, one round trip; an answer of any length
// in as many as it takes.
import type { Readable } from 'node:stream'
import pg from 'pg'
import { contextSettings, type RlsContext } from '../tenancy/rls-context.ts'
import { RuntimeError } from '../errors.ts'
import type { Connections } from './connections.ts'
import { shareLookups, type Lookup } from './lookups.ts'
import { MessageTooLong } from './message-guard.ts'
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
  /** URL of the runtime's login. */
  url: string
  /** URL of the ddl login. */
  ddlUrl: string
}

interface StreamedResponse {
  /** Results of the statements before the last. */
  before: Result[]
  /** The last one's rows in their frame. Destroy it to give up. */
  body: Readable
}

export class ScopedDatabase {
  readonly #connections: Connections
  readonly #home: HomeLogins
  readonly #lookups = new SharedRoundTrips<Lookup, Result>(async (lookups) => {
    const { parts, deal } = shareLookups(lookups)
    return deal(await this.runTogether(parts, { onlyReads: true }))
  })

  constructor(connections: Connections, home: HomeLogins) {
    this.#connections = connections
    this.#home = home
  }

  get tenantId(): string {
    return this.#home.tenantId
  }

  /**
   * Runs the statements in the caller's context as one transaction. Results stand in the statements' order.
   * @throws TripError with Postgres' SQLSTATE (map it with `databaseError`), RuntimeError when there is no connection
   */
  async run(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    return this.runTogether([{ context, statements }])
  }

  /** `run` for statements that change nothing: a connection that breaks is made up for with another, once. */
  read(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    return this.runTogether([{ context, statements }], { onlyReads: true })
  }

  /** The same for several callers at once: one transaction, in which the statements of each part run in its own context. */
  async runTogether(parts: readonly ScopedStatements[], { onlyReads = false } = {}): Promise<Result[]> {
    const scoped = parts.flatMap(({ context, statements }) => [this.#settingOf(context), ...statements])
    const results = await this.#roundTrip(scoped, (error, milliseconds) =>
      isWorthRepeating(error, milliseconds, onlyReads),
    )
    return results.filter((_, n) => scoped[n]?.text !== setContext)
  }

  /** The same, of which nothing stays: the results are what would have been. */
  async dryRun(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    const parts = [{ context, statements: [sql('begin'), ...statements, sql('rollback')] }]
    return (await this.runTogether(parts)).slice(1, -1)
  }

  /** `run` for a single statement. */
  async query(context: RlsContext, text: string, ...values: Statement['values'][number][]): Promise<Result> {
    const [result] = await this.run(context, sql(text, ...values))
    return result ?? { rows: [], count: 0 }
  }

  /** `run` for one quick reading statement, which shares its trip with others that wait for one. */
  lookUp(context: RlsContext, statement: Statement): Promise<Result> {
    return this.#lookups.run({ context, statement })
  }

  /**
   * `run` for an answer of any length: the rows of `last`, which has a single column of text, come as `body` is read. What is
   * thrown is thrown before the first of them; an error behind them destroys `body`, and then it was not all of the answer.
   * Only what is read to its end is committed. `signal` gives up, at any time.
   * @throws what `run` throws; RuntimeError DATABASE_BUSY when too many are being read
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
   * A statement that others wrote, with rows of a single column of text: whatever it does, nothing of it stays in the session
   * (`session-sweep.ts`). More than `maxBytes` of rows undo it. `signal` gives up, at any time; only what is read to its end is
   * committed.
   * @throws what `run` throws
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

  /** Until the first rows are there. `released` settles when the connection is given back. */
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

  /** @param mayRepeat asked once, with what went wrong and how long it had taken on its connection */
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
        // Nobody waits for it, but for who would have the connection.
        void sweepSession(connection).then((isClean) => this.#connections.release(login, connection, isClean))
      } else this.#connections.release(login, connection, reusable)
    }
    return this.#roundTrip(statements, () => false)
  }

  /**
   * One transaction with the owner's rights, for `POST /admin/reload-schemas` alone: a connection of its own that
   * is closed afterwards. What it publishes is written with `asPublisher`. The service context holds in it, so that
   * system collections can be read.
   * @throws TripError for what Postgres or the connection says and `work` lets pass
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
      throw new RuntimeError('DATABASE_UNAVAILABLE', 'the database does not answer', { cause })
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

/** What a session is told that ends, or whose statement is cancelled. */
const endings = new Set(['57P01', '57P02', '57P05', '57014'])
/** What has run longer may be what it was ended for. */
const briefMilliseconds = 1_000

/** True when nothing of it has happened, or it changes nothing, and it was right but came at a bad moment. */
function isWorthRepeating(
  { undone, sqlstate, cause }: RoundTripError,
  milliseconds: number,
  onlyReads: boolean,
): boolean {
  if (isStalePlan(cause)) return true
  if (milliseconds > briefMilliseconds) return false
  if (cause instanceof MessageTooLong) return false
  return (undone || onlyReads) && (sqlstate === undefined || endings.has(sqlstate))
}
