// The log of changes as calls: one connection that polls it, and reconnects when it is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { onCommit, type ChangeKind } from './change-log.ts'
import type { Database } from './database.ts'

interface ChangeFeedOptions {
  url: string
  /** The client through which this process writes: its commits are polled for at once. */
  database: Database
  onError: (error: Error) => void
}

/** One row of the log of changes. */
export interface Change {
  kind: ChangeKind
  tenantId: string
}

/** Receives `'resync'` when the feed begins and after a gap in it: the listener must then read the present state itself. */
export type ChangeListener = (change: Change | 'resync') => void

/** Bounds how late this process learns of the commits of other processes. */
const pollMilliseconds = 200
const reconnectMilliseconds = 500
const queryMilliseconds = 10_000
const pruneMilliseconds = 60_000
/** Changes are kept for longer than this, so a feed that has slept for less has missed none. */
const maxGapMilliseconds = 300_000
const retentionMilliseconds = 2 * maxGapMilliseconds

/**
 * Ids of transactions are not given out in the order of commits: a row may become visible after rows with a higher id.
 * All transactions below the horizon had ended, so the next poll begins there, and leaves out what was read before.
 */
const pollSql = `
  select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, now() as at,
    coalesce(
      (select json_agg(json_build_array(id, kind, tenant_id) order by id)
        from changes where transaction_id >= $1::bigint), '[]') as changes`

/** As a horizon: above all transactions. */
const noChanges = String(2n ** 63n - 1n)

interface Poll {
  horizon: string
  at: Date
  changes: [id: number, kind: ChangeKind, tenantId: string][]
}

/**
 * Reads the log of changes of the control database and reports each change to its subscribers, whichever process made
 * it.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #listeners = new Set<ChangeListener>()
  #isDue = false
  #pollNow: () => void = () => undefined

  constructor(options: ChangeFeedOptions) {
    this.#options = options
  }

  /** @returns a function that ends the subscription */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when `tenantId` was observed, on a resync, or when the signal aborts. Subscribes at once. */
  next(tenantId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        unsubscribe()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const unsubscribe = this.subscribe((change) => {
        if (change === 'resync' || (change.kind === 'observed' && change.tenantId === tenantId)) done()
      })
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }

  /** Polls until the signal aborts; it connects again when the connection is lost, and then tells subscribers to resync. */
  async run(signal: AbortSignal): Promise<void> {
    const stopped = () => signal.aborted
    const unsubscribe = onCommit(this.#options.database, () => {
      this.#isDue = true
      this.#pollNow()
    })
    try {
      while (!stopped()) {
        try {
          await this.#follow(signal)
        } catch (cause) {
          if (stopped()) return
          this.#options.onError(new Error('the change feed was lost', { cause }))
          await sleep(reconnectMilliseconds)
        }
      }
    } finally {
      unsubscribe()
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: 'tenantry-change-feed',
      connectionTimeoutMillis: 5_000,
      query_timeout: queryMilliseconds,
      keepAlive: true,
    })
    const lost = Promise.withResolvers<never>()
    // The connection may break while nothing awaits it.
    lost.promise.catch(() => undefined)
    client.on('error', (error) => lost.reject(error))
    client.on('end', () => lost.reject(new Error('the connection ended')))
    const stop = () => lost.reject(new Error('stopped'))
    signal.addEventListener('abort', stop)
    try {
      await client.connect()
      let last = await poll(client, noChanges)
      let seen = new Set<number>()
      let prunedAt = 0
      this.#report('resync')
      for (;;) {
        await Promise.race([this.#untilDue(), lost.promise])
        const next = await poll(client, last.horizon)
        if (next.at.getTime() - last.at.getTime() > maxGapMilliseconds) this.#report('resync')
        for (const [id, kind, tenantId] of next.changes) if (!seen.has(id)) this.#report({ kind, tenantId })
        seen = new Set(next.changes.map(([id]) => id))
        last = next
        if (next.at.getTime() - prunedAt > pruneMilliseconds) {
          prunedAt = next.at.getTime()
          await client.query(`delete from changes where at < now() - $1 * interval '1 millisecond'`, [
            retentionMilliseconds,
          ])
        }
      }
    } finally {
      signal.removeEventListener('abort', stop)
      client.end().catch(() => undefined)
    }
  }

  /** Resolves when the next poll is due, or at once when this process has committed a change since the last one. */
  async #untilDue(): Promise<void> {
    if (!this.#isDue) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pollMilliseconds)
        this.#pollNow = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#isDue = false
  }

  #report(change: Change | 'resync'): void {
    for (const listener of [...this.#listeners]) listener(change)
  }
}

async function poll(client: pg.Client, horizon: string): Promise<Poll> {
  const [row] = (await client.query<Poll>(pollSql, [horizon])).rows
  if (row === undefined) throw new Error('a poll of the changes returned no row')
  return row
}
