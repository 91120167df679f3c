// The only access to a tenant's data: statements in a caller's context, in one transaction and one round trip; a response
// of unlimited length takes several round trips.
import type pg from 'pg'
import type { ArrivingResult } from '../bounds/index.ts'
import { contextSettings, type RlsContext } from '../tenancy/rls-context.ts'
import { pidOf, type Connections } from './connections.ts'
import { runtimeLogin, type HomeLogins } from './home-logins.ts'
import { shareLookups, type Lookup } from './lookups.ts'
import { runAsOwner } from './owner-transaction.ts'
import { isFresh, positionStatement, readPosition } from './replicas/replica-position.ts'
import { StaleReplicaError, type PrimaryAttempt, type ReadableReplica, type Replicas } from './replicas/replicas.ts'
import { RoundTrip } from './round-trip.ts'
import { RowStream, type Frame } from './row-stream.ts'
import { sweepSession } from './session-sweep.ts'
import { SharedRoundTrips } from './shared-round-trips.ts'
import { sql, type Result, type ScopedStatements, type Statement } from './statement.ts'
import { StreamedRoundTrip } from './streamed-round-trip.ts'
import type { RoundTripOptions, RunOptions, Server, StreamedResponse, StreamOptions } from './run-options.ts'
import { unknownOutcome, withoutRoom } from './no-room.ts'
import { isWorthRepeating } from './worth-repeating.ts'
import { RoundTripError } from './round-trip-error.ts'

export type { HomeLogins } from './home-logins.ts'

const setContext =
  "select set_config('app.tenant_id', $1, true), set_config('app.role', $2, true)," +
  " set_config('app.user_id', $3, true), set_config('request.jwt.claims', $4, true)"

export class ScopedDatabase {
  readonly #connections: Connections
  readonly #home: HomeLogins
  readonly #replicas: Replicas | undefined
  readonly #lookups = this.#sharedLookups(false)
  readonly #lookupsAnywhere = this.#sharedLookups(true)

  /**
   * Creates the access.
   * @param home the logins, whose owner may replace the URLs while requests run
   * @param replicas the replicas of clusters; undefined if reads always wait for a primary
   */
  constructor(connections: Connections, home: HomeLogins, replicas?: Replicas) {
    this.#connections = connections
    this.#home = home
    this.#replicas = replicas
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

  /**
   * Runs statements that change nothing as `read` does. While a cluster has no primary, they run at a replica with every change that
   * was acknowledged before the call.
   */
  readAnywhere(context: RlsContext, ...statements: Statement[]): Promise<Result[]> {
    return this.runTogether([{ context, statements }], { onlyReads: true, isAnywhere: true })
  }

  /** Runs statements of several callers in one transaction, those of each part in its own context. */
  async runTogether(
    parts: readonly ScopedStatements[],
    { onlyReads = false, isAnywhere = false }: RunOptions = {},
  ): Promise<Result[]> {
    const scoped = parts.flatMap(({ context, statements }) => [this.#settingOf(context), ...statements])
    const isAnonymous = parts.every(({ context }) => context.role === 'anon')
    const repeats = this.#connections.failoverMilliseconds > 0 ? failoverRepeats : 1
    const options = { onlyReads, isAnonymous, repeats }
    const replicas = isAnywhere ? this.#usableReplicas() : undefined
    const results = await (replicas === undefined
      ? this.#roundTrip(scoped, options)
      : replicas.read(this.#home, {
          atPrimary: (attempt) => this.#roundTrip(scoped, { ...options, attempt }),
          atReplica: (server) => this.#atReplica(server, scoped, options),
        }))
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

  /** Runs one quick reading statement as `read` does, in a round trip shared with others that wait for one. */
  lookUp(context: RlsContext, statement: Statement): Promise<Result> {
    return this.#lookups.run({ context, statement })
  }

  /** Runs one quick reading statement as `readAnywhere` does, in a round trip shared with others that wait for one. */
  lookUpAnywhere(context: RlsContext, statement: Statement): Promise<Result> {
    return this.#lookupsAnywhere.run({ context, statement })
  }

  /**
   * Runs statements as `readAnywhere` does, with a response of unlimited length: the rows of `last`, which has a single column of
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
    const atPrimary = async (attempt?: PrimaryAttempt) => {
      const both = attempt === undefined ? signal : AbortSignal.any([signal, attempt.signal])
      const begun = performance.now()
      const begin = () => this.#beginStream(scoped, last, both, { ...options, attempt })
      return begin().catch((error: unknown) => {
        if (both.aborted || !(error instanceof RoundTripError)) throw error
        if (!this.#isWorthRepeating(error, begun, false)) throw error
        return begin()
      })
    }
    const atReplica = async (server: ReadableReplica) => {
      const options = { result, isTakenInParts: true, server }
      const stream = await this.#beginStream([positionStatement, ...scoped], last, signal, options)
      const [position, ...results] = stream.results
      if (isFresh(server.replica, readPosition(position?.rows[0]))) return { ...stream, results }
      stream.roundTrip.cancel(new StaleReplicaError('The replica is behind.'))
      throw new StaleReplicaError('The replica is behind.')
    }
    const replicas = this.#usableReplicas()
    try {
      const { roundTrip, first, released, ...begun } = await (replicas === undefined
        ? atPrimary()
        : replicas.read(this.#home, { atPrimary, atReplica }))
      void released.then(leave)
      const results = begun.results.slice(1)
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
    {
      result,
      isTakenInParts = false,
      isForeign = last.isForeign ?? false,
      maxBytes = Infinity,
      attempt,
      server = this.#primary(),
    }: StreamOptions,
  ) {
    signal.throwIfAborted()
    const { connections, login } = server
    const connection = await connections.acquire(login, { signal })
    if (attempt !== undefined) attempt.pid = pidOf(connection)
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
        connections.release(login, connection, reusable && (!isForeign || (await sweepSession(connection))))
      })
    try {
      if (signal.aborted) abort()
      else connection.client.query(roundTrip as unknown as pg.Submittable)
      return { roundTrip, first: await roundTrip.next(), released, results: roundTrip.results }
    } catch (error) {
      roundTrip.cancel(error)
      await released
      throw error
    }
  }

  /** Returns the primary with the runtime's login as it is now. */
  #primary(): Server {
    return { connections: this.#connections, login: runtimeLogin(this.#home) }
  }

  /** Returns the replicas, if the home has any. */
  #usableReplicas(): Replicas | undefined {
    return (this.#home.members ?? []).length > 0 ? this.#replicas : undefined
  }

  #sharedLookups(isAnywhere: boolean): SharedRoundTrips<Lookup, Result> {
    return new SharedRoundTrips(async (lookups) => {
      const { parts, distribute } = shareLookups(lookups)
      return distribute(await this.runTogether(parts, { onlyReads: true, isAnywhere }))
    })
  }

  /** Runs one round trip at a replica. @throws StaleReplicaError if it has not replayed everything */
  async #atReplica(server: ReadableReplica, statements: Statement[], options: RoundTripOptions): Promise<Result[]> {
    const atServer = { ...options, repeats: 0, server }
    const [position, ...results] = await this.#roundTrip([positionStatement, ...statements], atServer)
    if (isFresh(server.replica, readPosition(position?.rows[0]))) return results
    throw new StaleReplicaError('The replica is behind.')
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

  #isWorthRepeating(error: RoundTripError, begun: number, onlyReads: boolean): boolean {
    const { failoverMilliseconds } = this.#connections
    return isWorthRepeating(error, { milliseconds: performance.now() - begun, onlyReads, failoverMilliseconds })
  }

  /** Runs one round trip, and repeats it if that is worth while. */
  async #roundTrip(statements: Statement[], options: RoundTripOptions): Promise<Result[]> {
    const { onlyReads, isAnonymous, repeats, attempt, server = this.#primary() } = options
    const { connections, login } = server
    const signal = attempt?.signal
    const connection = await connections.acquire(login, { signal })
    if (attempt !== undefined) attempt.pid = pidOf(connection)
    const begun = performance.now()
    let reusable = false
    const result = this.#openResult(isAnonymous)
    const roundTrip = new RoundTrip(statements, connection.prepared)
    const abort = () => roundTrip.cancel(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
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
        signal?.aborted === true ||
        !(error instanceof RoundTripError) ||
        !this.#isWorthRepeating(error, begun, onlyReads)
      )
        throw error
    } finally {
      if (attempt !== undefined) attempt.pid = undefined
      signal?.removeEventListener('abort', abort)
      connection.guard.onRow = undefined
      result.release()
      if (reusable && statements.some(({ isForeign }) => isForeign === true)) {
        // Only the next user of the connection has to wait for the sweep.
        void sweepSession(connection).then((isClean) => connections.release(login, connection, isClean))
      } else connections.release(login, connection, reusable)
    }
    return this.#roundTrip(statements, { ...options, repeats: repeats - 1 })
  }

  /**
   * Runs one transaction with the owner's rights, only for `POST /admin/reload-schemas`, on its own connection, which is
   * closed afterwards. The results of a reload are written with `asPublisher`. The transaction has the service context, so
   * that system collections can be read.
   * @throws RoundTripError for an error of Postgres or the connection that `work` does not handle
   */
  withOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const context = contextSettings(this.#home.tenantId, { role: 'service', reason: 'schema reload' })
    return runAsOwner(this.#home, sql(setContext, ...context), work)
  }
}

/** During a failover, the next session may end, too. */
const failoverRepeats = 3
