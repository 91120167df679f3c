// All connections of this runtime to Postgres. A connection belongs to one tenant's login role for its whole life. Each
// tenant may have a few, and all tenants together no more than a maximum, at which the connection that has been idle
// longest is closed for a tenant that needs one.
import type pg from 'pg'
import { Results } from '../bounds/index.ts'
import { RuntimeError } from '../errors.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import { createClient, type ServerKind } from './create-client.ts'
import { LargeRows } from './large-rows.ts'
import { guardMessages, type MessageGuard } from './message-guard.ts'
import { PreparedStatements } from './prepared-statements.ts'
import { connectTo, reachServer } from './reach-primary.ts'
import type { ReadingTime } from './row-stream.ts'
import { StreamSlots } from './stream-slots.ts'
import { withSignal } from './with-signal.ts'
import { withValidPassword } from './valid-password.ts'

export { defaultConnectionLimits, type ConnectionLimits } from './connection-limits.ts'

export interface Connection {
  readonly client: pg.Client
  /** Limits the rows of the round trip in progress. */
  readonly guard: MessageGuard
  readonly prepared: PreparedStatements
  /** The time on the clock of `Connections` at which its tenant's turn with it began. */
  readonly openedAt: number
}

/** The time for which a tenant may continue to use a connection while another tenant has none. */
const turnMilliseconds = 100

/** A tenant's login. */
export interface Login {
  tenantId: string
  /** Empty for a tenant that these runtimes do not serve any more. */
  url: string
  /** URLs with the login's other valid passwords, while they are rotated. */
  otherUrls?: readonly string[] | undefined
}

interface AcquireOptions {
  /** Ends the wait for a connection. */
  signal?: AbortSignal | undefined
}

interface Waiter {
  resolve(connection: Connection): void
  reject(error: Error): void
  since: number
  timer: NodeJS.Timeout
}

interface Pool {
  login: Login
  /** The number of open and opening connections. */
  count: number
  idle: { connection: Connection; since: number }[]
  waiting: Set<Waiter>
  /** Whether the last attempt to open a connection has failed. */
  isUnreachable: boolean
}

export class Connections {
  /** Slots for reading long responses, which may use a part of the connections, so that the rest remains available. */
  readonly streams: StreamSlots
  /** The memory for results. */
  readonly results: Results
  readonly largeRows = new LargeRows()
  readonly #limits: ConnectionLimits
  readonly #now: () => number
  readonly #server: ServerKind
  readonly #pools = new Map<string, Pool>()
  readonly #sweep: NodeJS.Timeout
  /** Connections that Postgres or the network ended, and that may not be released yet. */
  readonly #broken = new WeakSet<Connection>()
  #total = 0
  #closed = false

  /**
   * Creates the pools.
   * @param results the memory for results; by default, it is not limited
   * @param now returns monotonic milliseconds
   * @param server whether the connections lead to a primary, or to whatever server is at the address, for reads only
   */
  constructor(
    limits: ConnectionLimits,
    results: Results = new Results(Infinity, 1),
    now: () => number = () => performance.now(),
    server: ServerKind = 'primary',
  ) {
    this.#server = server
    this.#limits = limits
    this.results = results
    this.#now = now
    this.streams = new StreamSlots({ total: Math.ceil(limits.total / 2), perTenant: Math.ceil(limits.perTenant / 4) })
    this.#sweep = setInterval(() => this.#closeIdle(), Math.max(1000, limits.idleMilliseconds / 4))
    this.#sweep.unref()
  }

  /** Returns the number of open and idle connections, and of requests that wait for one. */
  get load(): { open: number; idle: number; waiting: number } {
    let idle = 0
    let waiting = 0
    for (const pool of this.#pools.values()) {
      idle += pool.idle.length
      waiting += pool.waiting.size
    }
    return { open: this.#total, idle, waiting }
  }

  get failoverMilliseconds(): number {
    return this.#limits.failoverMilliseconds
  }

  get readingTime(): ReadingTime {
    return this.#limits.reading
  }

  /**
   * Acquires a connection.
   * @throws RuntimeError DATABASE_BUSY when none is released in time, DATABASE_UNAVAILABLE when Postgres cannot be reached;
   * the reason of `signal`
   */
  async acquire(login: Login, { signal }: AcquireOptions = {}): Promise<Connection> {
    if (this.#closed) throw new RuntimeError('DATABASE_UNAVAILABLE', 'The service is stopping.')
    if (login.url === '') throw notServed()
    signal?.throwIfAborted()
    const pool = this.#poolOf(login)
    const idle = pool.idle.pop()
    if (idle !== undefined) return idle.connection
    const acquiring = this.#mayOpen(pool) ? this.#open(pool) : this.#wait(pool, signal)
    return withSignal(acquiring, signal, (connection) => this.release(login, connection, true))
  }

  /** Releases a connection; `reusable: false` closes it. */
  release(login: Login, connection: Connection, reusable: boolean): void {
    const pool = this.#pools.get(login.tenantId)
    const isCurrent = login.url !== '' && pool?.login.url === login.url
    if (!reusable || this.#broken.has(connection) || this.#closed || !isCurrent) {
      void this.#discard(login.tenantId, connection)
      return
    }
    const [waiter] = pool.waiting
    if (waiter !== undefined && this.#isTurnOver(pool, connection)) {
      this.#moveToEnd(login.tenantId, pool)
      void this.#discard(login.tenantId, connection)
      return
    }
    if (waiter !== undefined) {
      this.#serve(pool, waiter, connection)
      return
    }
    pool.idle.push({ connection, since: this.#now() })
    this.#openForWaiting()
  }

  /** Uses a tenant's login from now on. Idle connections of another password close, busy ones when they are released. */
  renew(login: Login): void {
    if (this.#pools.has(login.tenantId)) this.#poolOf(login)
  }

  /**
   * Closes a tenant's connections after its deletion, or its move to other runtimes. Busy ones close when they are released.
   */
  evict(tenantId: string): void {
    const pool = this.#pools.get(tenantId)
    if (pool === undefined) return
    pool.login = { tenantId, url: '' }
    for (const waiter of pool.waiting) this.#reject(pool, waiter, notServed())
    for (const { connection } of pool.idle.splice(0)) void this.#discard(tenantId, connection)
  }

  /** Rejects new work and closes every idle connection. Busy ones close when they are released. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweep)
    const ending: Promise<void>[] = []
    for (const [tenantId, pool] of this.#pools) {
      for (const waiter of pool.waiting)
        this.#reject(pool, waiter, new RuntimeError('DATABASE_UNAVAILABLE', 'The service is stopping.'))
      for (const { connection } of pool.idle.splice(0)) ending.push(this.#discard(tenantId, connection))
    }
    await Promise.all(ending)
  }

  #poolOf(login: Login): Pool {
    let pool = this.#pools.get(login.tenantId)
    if (pool === undefined) {
      pool = { login, count: 0, idle: [], waiting: new Set(), isUnreachable: false }
      this.#pools.set(login.tenantId, pool)
    }
    if (pool.login.url !== login.url) {
      for (const { connection } of pool.idle.splice(0)) void this.#discard(login.tenantId, connection)
    }
    pool.login = login
    return pool
  }

  /**
   * Whether a connection may be opened now. Makes room by closing the one that has been idle longest. A tenant leaves as
   * many for others as it has, so that the slow statements of a few tenants do not use all of them.
   */
  #mayOpen(pool: Pool): boolean {
    if (pool.count >= this.#limits.perTenant) return false
    const isShared = pool.count > 0 && this.#pools.size > 1
    if (isShared && pool.count >= this.#limits.total - this.#total + this.load.idle) return false
    if (this.#total < this.#limits.total) return true
    let oldest: { tenantId: string; pool: Pool; since: number } | undefined
    for (const [tenantId, other] of this.#pools) {
      const first = other.idle[0]
      if (first !== undefined && (oldest === undefined || first.since < oldest.since)) {
        oldest = { tenantId, pool: other, since: first.since }
      }
    }
    const evicted = oldest?.pool.idle.shift()
    if (oldest === undefined || evicted === undefined) return false
    void this.#drop(oldest.tenantId, evicted.connection)
    return true
  }

  /**
   * Whether another tenant waits that has no connection, or would have fewer than this one even with another connection.
   */
  #isTurnOver(pool: Pool, connection: Connection): boolean {
    if (this.#total < this.#limits.total || this.#now() - connection.openedAt < turnMilliseconds) return false
    for (const other of this.#pools.values()) {
      if (other !== pool && other.waiting.size > 0 && (other.count === 0 || other.count + 1 < pool.count)) return true
    }
    return false
  }

  /** Moves a tenant behind all others, so that no tenant is served twice while another waits. */
  #moveToEnd(tenantId: string, pool: Pool): void {
    this.#pools.delete(tenantId)
    this.#pools.set(tenantId, pool)
  }

  /** Opens a connection for a request that has waited for one since the given time. */
  async #open(pool: Pool, since = this.#now()): Promise<Connection> {
    const { login } = pool
    pool.count++
    this.#total++
    const connect = () => withValidPassword([login.url, ...(login.otherUrls ?? [])], (url) => this.#connect(login, url))
    try {
      const connection = await reachServer(connect, {
        deadline: since + this.#limits.failoverMilliseconds,
        now: this.#now,
        isClosed: () => this.#closed,
        onFailure: () => (pool.isUnreachable = true),
      })
      pool.isUnreachable = false
      // The tenant was evicted meanwhile.
      if (login.url !== '') return connection
      connection.client.end().catch(() => undefined)
      throw notServed()
    } catch (cause) {
      this.#removeOne(login.tenantId)
      this.#openForWaiting()
      throw new RuntimeError('DATABASE_UNAVAILABLE', 'The database does not respond.', { cause })
    }
  }

  async #connect({ tenantId }: Login, url: string): Promise<Connection> {
    const client = createClient(tenantId, url, this.#limits, this.#server)
    const connection: Connection = {
      client,
      guard: { onRow: undefined },
      prepared: new PreparedStatements(),
      openedAt: this.#now(),
    }
    // An idle connection that Postgres ends (restart, terminate) must neither crash the runtime nor be reused.
    client.on('error', () => this.#lost(tenantId, connection))
    client.on('end', () => this.#lost(tenantId, connection))
    try {
      await connectTo(client, this.#server)
      // The connection may have ended together with the login.
      if (this.#broken.has(connection)) throw new Error('Postgres ended the connection right after the login.')
      guardMessages(client, connection.guard)
      return connection
    } catch (cause) {
      client.end().catch(() => undefined)
      throw cause
    }
  }

  #wait(pool: Pool, signal: AbortSignal | undefined): Promise<Connection> {
    if (pool.waiting.size >= this.#limits.maxWaiting) {
      return Promise.reject(new RuntimeError('DATABASE_BUSY', 'Too many requests wait for the database.'))
    }
    return new Promise((resolve, reject) => {
      const { waitMilliseconds } = this.#limits
      const endWait = () => this.#endWait(pool, waiter)
      const waiter: Waiter = { resolve, reject, since: this.#now(), timer: setTimeout(endWait, waitMilliseconds) }
      pool.waiting.add(waiter)
      const abort = () => {
        if (pool.waiting.has(waiter)) this.#reject(pool, waiter, new Error('The request does not wait any more.'))
      }
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Rejects a request that has waited long enough. */
  #endWait(pool: Pool, waiter: Waiter): void {
    const remaining = waiter.since + this.#limits.failoverMilliseconds - this.#now()
    if (pool.isUnreachable && remaining > 0) waiter.timer = setTimeout(() => this.#endWait(pool, waiter), remaining)
    else
      this.#reject(pool, waiter, new RuntimeError('DATABASE_BUSY', 'No database connection became available in time.'))
  }

  #serve(pool: Pool, waiter: Waiter, connection: Connection): void {
    clearTimeout(waiter.timer)
    pool.waiting.delete(waiter)
    waiter.resolve(connection)
  }

  #reject(pool: Pool, waiter: Waiter, error: Error): void {
    clearTimeout(waiter.timer)
    pool.waiting.delete(waiter)
    waiter.reject(error)
  }

  /** Opens a connection for a waiting tenant after one was closed. Tenants take turns. */
  #openForWaiting(): void {
    for (const [tenantId, pool] of this.#pools) {
      const [waiter] = pool.waiting
      if (waiter === undefined || this.#closed || !this.#mayOpen(pool)) continue
      clearTimeout(waiter.timer)
      pool.waiting.delete(waiter)
      this.#moveToEnd(tenantId, pool)
      this.#open(pool, waiter.since).then(
        (connection) => waiter.resolve(connection),
        (error: unknown) =>
          waiter.reject(
            error instanceof Error ? error : new Error('The connection could not be opened.', { cause: error }),
          ),
      )
      return
    }
  }

  /** Closes a connection and opens one for a waiting request. */
  #discard(tenantId: string, connection: Connection): Promise<void> {
    const ended = this.#drop(tenantId, connection)
    this.#openForWaiting()
    return ended
  }

  /** Closes a connection whose slot is already in use. */
  #drop(tenantId: string, connection: Connection): Promise<void> {
    connection.client.removeAllListeners('end')
    this.#removeOne(tenantId)
    return connection.client.end().catch(() => undefined)
  }

  #lost(tenantId: string, connection: Connection): void {
    this.#broken.add(connection)
    const pool = this.#pools.get(tenantId)
    const at = pool?.idle.findIndex((idle) => idle.connection === connection) ?? -1
    if (pool === undefined || at < 0) return
    pool.idle.splice(at, 1)
    void this.#discard(tenantId, connection)
  }

  #removeOne(tenantId: string): void {
    this.#total--
    const pool = this.#pools.get(tenantId)
    if (pool === undefined) return
    pool.count--
    if (pool.count === 0 && pool.waiting.size === 0) this.#pools.delete(tenantId)
  }

  #closeIdle(): void {
    const before = this.#now() - this.#limits.idleMilliseconds
    for (const [tenantId, pool] of this.#pools) {
      while (pool.idle[0] !== undefined && pool.idle[0].since < before) {
        const idle = pool.idle.shift()
        if (idle !== undefined) void this.#discard(tenantId, idle.connection)
      }
    }
  }
}

/** Returns the process ID of the connection's session. */
export function pidOf({ client }: Connection): number | undefined {
  // node-postgres has it, but its types do not.
  const { processID } = client as unknown as { processID: unknown }
  return typeof processID === 'number' ? processID : undefined
}

/** Returns the error for work of a tenant that was deleted, or has moved to other runtimes. */
export function notServed(): RuntimeError {
  return new RuntimeError('DATABASE_UNAVAILABLE', 'This runtime does not serve the tenant any more.')
}
