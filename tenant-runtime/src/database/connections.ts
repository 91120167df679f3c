// Every connection of this runtime to Postgres. A connection belongs to one tenant's login role for all its life;
// each tenant may have a few, all tenants together no more than the cap. When the cap is reached, the connection
// that has been idle longest is closed for whoever needs one.
import pg from 'pg'
import { guardMessages } from './message-guard.ts'
import { RuntimeError } from '../errors.ts'
import { PreparedStatements } from './prepared-statements.ts'
import type { ReadingTime } from './row-stream.ts'
import { StreamSlots } from './stream-slots.ts'

export interface ConnectionLimits {
  total: number
  perTenant: number
  /** A connection unused for so long is closed. */
  idleMilliseconds: number
  /** The longest wait for a connection before 503. */
  waitMilliseconds: number
  /** Requests of one tenant that may wait; more are refused at once. */
  maxWaiting: number
  connectMilliseconds: number
  statementMilliseconds: number
  /** A long answer whose reader takes nothing for so long is cut off; so is one that has taken so long in all. */
  reading: ReadingTime
}

export const defaultConnectionLimits: ConnectionLimits = {
  total: 100,
  perTenant: 16,
  idleMilliseconds: 30_000,
  waitMilliseconds: 5_000,
  maxWaiting: 512,
  connectMilliseconds: 2_000,
  statementMilliseconds: 30_000,
  reading: { stallMilliseconds: 60_000, maxMilliseconds: 600_000 },
}

export interface Connection {
  readonly client: pg.Client
  readonly prepared: PreparedStatements
  /** On the clock of `Connections`: its tenant's turn with it began then. */
  readonly openedAt: number
}

/** So long a tenant may go on with a connection while another has none. */
const turnMilliseconds = 100

interface Login {
  tenantId: string
  url: string
}

interface Waiter {
  resolve(connection: Connection): void
  reject(error: Error): void
  timer: NodeJS.Timeout
}

interface Pool {
  login: Login
  /** Open and opening. */
  count: number
  idle: { connection: Connection; since: number }[]
  waiting: Set<Waiter>
}

export class Connections {
  /** Taken by those that read a long answer: a part of the connections, so that the rest goes on. */
  readonly streams: StreamSlots
  readonly #limits: ConnectionLimits
  readonly #now: () => number
  readonly #pools = new Map<string, Pool>()
  readonly #sweep: NodeJS.Timeout
  /** Ended by Postgres or the network, and perhaps not yet given back. */
  readonly #broken = new WeakSet<Connection>()
  #total = 0
  #closed = false

  /** `now` in milliseconds, monotonic. */
  constructor(limits: ConnectionLimits, now: () => number = () => performance.now()) {
    this.#limits = limits
    this.#now = now
    this.streams = new StreamSlots({ total: Math.ceil(limits.total / 2), perTenant: Math.ceil(limits.perTenant / 4) })
    this.#sweep = setInterval(() => this.#closeIdle(), Math.max(1000, limits.idleMilliseconds / 4))
    this.#sweep.unref()
  }

  /** Open connections, and requests that wait for one. */
  get load(): { open: number; idle: number; waiting: number } {
    let idle = 0
    let waiting = 0
    for (const pool of this.#pools.values()) {
      idle += pool.idle.length
      waiting += pool.waiting.size
    }
    return { open: this.#total, idle, waiting }
  }

  get readingTime(): ReadingTime {
    return this.#limits.reading
  }

  /** @throws RuntimeError DATABASE_BUSY when none gets free in time, DATABASE_UNAVAILABLE when Postgres can't be reached */
  async acquire(login: Login): Promise<Connection> {
    if (this.#closed) throw new RuntimeError('DATABASE_UNAVAILABLE', 'the service is stopping')
    const pool = this.#poolOf(login)
    const idle = pool.idle.pop()
    if (idle !== undefined) return idle.connection
    if (this.#mayOpen(pool)) return this.#open(pool)
    return this.#wait(pool)
  }

  /** Gives a connection back; `reusable: false` closes it. */
  release(login: Login, connection: Connection, reusable: boolean): void {
    const pool = this.#pools.get(login.tenantId)
    if (!reusable || this.#broken.has(connection) || this.#closed || pool?.login.url !== login.url) {
      void this.#discard(login.tenantId, connection)
      return
    }
    const [waiter] = pool.waiting
    if (waiter !== undefined && this.#isTurnOver(pool, connection)) {
      this.#lastInLine(login.tenantId, pool)
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

  /** Closes what a tenant holds; called when it is gone or its password changed. Busy ones close when given back. */
  evict(tenantId: string): void {
    const pool = this.#pools.get(tenantId)
    if (pool === undefined) return
    pool.login = { tenantId, url: '' }
    for (const { connection } of pool.idle.splice(0)) void this.#discard(tenantId, connection)
  }

  /** Refuses new work and closes every idle connection; busy ones close when given back. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweep)
    const ending: Promise<void>[] = []
    for (const [tenantId, pool] of this.#pools) {
      for (const waiter of pool.waiting)
        this.#reject(pool, waiter, new RuntimeError('DATABASE_UNAVAILABLE', 'the service is stopping'))
      for (const { connection } of pool.idle.splice(0)) ending.push(this.#discard(tenantId, connection))
    }
    await Promise.all(ending)
  }

  #poolOf(login: Login): Pool {
    let pool = this.#pools.get(login.tenantId)
    if (pool === undefined) {
      pool = { login, count: 0, idle: [], waiting: new Set() }
      this.#pools.set(login.tenantId, pool)
    }
    if (pool.login.url !== login.url) {
      for (const { connection } of pool.idle.splice(0)) void this.#discard(login.tenantId, connection)
      pool.login = login
    }
    return pool
  }

  /** True when a connection may be opened now; makes room by closing the one idle longest. */
  #mayOpen(pool: Pool): boolean {
    if (pool.count >= this.#limits.perTenant) return false
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

  /** True when somebody waits who has fewer connections even after getting this one, or none at all. */
  #isTurnOver(pool: Pool, connection: Connection): boolean {
    if (this.#total < this.#limits.total || this.#now() - connection.openedAt < turnMilliseconds) return false
    for (const other of this.#pools.values()) {
      if (other !== pool && other.waiting.size > 0 && (other.count === 0 || other.count + 1 < pool.count)) return true
    }
    return false
  }

  /** So that no tenant is served twice while another waits. */
  #lastInLine(tenantId: string, pool: Pool): void {
    this.#pools.delete(tenantId)
    this.#pools.set(tenantId, pool)
  }

  async #open(pool: Pool): Promise<Connection> {
    const { login } = pool
    pool.count++
    this.#total++
    const client = new pg.Client({
      connectionString: login.url,
      application_name: `tenantry:${login.tenantId}`,
      connectionTimeoutMillis: this.#limits.connectMilliseconds,
      keepAlive: true,
      options: [
        `-c statement_timeout=${this.#limits.statementMilliseconds}`,
        '-c idle_in_transaction_session_timeout=10000',
        // A query whose caller is gone is not worth finishing.
        '-c client_connection_check_interval=2000',
        // Nor one of a host that is gone: its transaction would hold its locks for hours.
        '-c tcp_keepalives_idle=30',
        '-c tcp_keepalives_interval=10',
        '-c tcp_keepalives_count=3',
        '-c timezone=UTC',
        '-c datestyle=ISO',
        '-c jit=off',
      ].join(' '),
    })
    const connection: Connection = { client, prepared: new PreparedStatements(), openedAt: this.#now() }
    // An idle connection that Postgres ends (restart, terminate) must neither crash us nor be handed out.
    client.on('error', () => this.#lost(login.tenantId, connection))
    client.on('end', () => this.#lost(login.tenantId, connection))
    try {
      await client.connect()
      // Its end may have come with the last words of the login.
      if (this.#broken.has(connection)) throw new Error('the connection was ended as soon as it was there')
      guardMessages(client)
      return connection
    } catch (cause) {
      this.#evictOne(login.tenantId)
      client.end().catch(() => undefined)
      this.#openForWaiting()
      throw new RuntimeError('DATABASE_UNAVAILABLE', 'the database does not answer', { cause })
    }
  }

  #wait(pool: Pool): Promise<Connection> {
    if (pool.waiting.size >= this.#limits.maxWaiting) {
      return Promise.reject(new RuntimeError('DATABASE_BUSY', 'too many requests wait for the database'))
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        resolve,
        reject,
        timer: setTimeout(() => {
          this.#reject(pool, waiter, new RuntimeError('DATABASE_BUSY', 'no database connection became free in time'))
        }, this.#limits.waitMilliseconds),
      }
      pool.waiting.add(waiter)
    })
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

  /** After room was made: opens a connection for some tenant that waits, tenants in turn. */
  #openForWaiting(): void {
    for (const [tenantId, pool] of this.#pools) {
      const [waiter] = pool.waiting
      if (waiter === undefined || this.#closed || !this.#mayOpen(pool)) continue
      clearTimeout(waiter.timer)
      pool.waiting.delete(waiter)
      this.#lastInLine(tenantId, pool)
      this.#open(pool).then(
        (connection) => waiter.resolve(connection),
        (error: unknown) =>
          waiter.reject(error instanceof Error ? error : new Error('no connection', { cause: error })),
      )
      return
    }
  }

  /** Closes a connection and lets whoever waits have its place. */
  #discard(tenantId: string, connection: Connection): Promise<void> {
    const ended = this.#drop(tenantId, connection)
    this.#openForWaiting()
    return ended
  }

  /** Closes a connection whose place is taken already. */
  #drop(tenantId: string, connection: Connection): Promise<void> {
    connection.client.removeAllListeners('end')
    this.#evictOne(tenantId)
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

  #evictOne(tenantId: string): void {
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
