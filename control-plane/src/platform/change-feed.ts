// Delivers the log of changes as calls: one connection polls it, and reconnects when it is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { onCommit, type ChangeKind } from './change-log.ts'
import type { Database } from './database.ts'
import { openConnection } from './single-connection.ts'
import type { PostgresUrl } from './superuser-url.ts'

interface ChangeFeedOptions {
  url: PostgresUrl
  /** Client of this process's writes. The feed polls at once after its commits. */
  database: Database
  onError: (error: Error) => void
}

/** One row of the log of changes. */
export interface Change {
  kind: ChangeKind
  /** The tenant's ID; of a blocked address, the address. */
  subject: string
}

/** Receives `'resync'` when the feed begins and after a gap; the listener must then read the current state itself. */
export type ChangeListener = (change: Change | 'resync') => void

/** Maximum delay until this process receives the commits of other processes. */
const pollMilliseconds = 200
const reconnectMilliseconds = 500
const queryMilliseconds = 10_000
const pruneMilliseconds = 60_000
/** Maximum gap without a resync. Changes are retained for longer, so a shorter gap misses none. */
const maxGapMilliseconds = 300_000
const retentionMilliseconds = 2 * maxGapMilliseconds

/**
 * Reads the changes since a horizon. Transaction IDs are not in the order of commits: a row may become visible after
 * rows with a higher ID. All transactions below the horizon have ended, so the next poll begins there and skips known
 * rows.
 */
const pollSql = `
  select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, now() as at,
    coalesce(
      (select json_agg(json_build_array(id, kind, tenant_id) order by id)
        from changes where transaction_id >= $1::bigint), '[]') as changes`

/** Horizon above all transactions. */
const noChanges = String(2n ** 63n - 1n)

interface Poll {
  horizon: string
  at: Date
  changes: [id: number, kind: ChangeKind, subject: string][]
}

/** Reads the log of changes of the control database and reports each change of any process to its subscribers. */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #listeners = new Set<ChangeListener>()
  #isDue = false
  #pollNow: () => void = () => undefined

  constructor(options: ChangeFeedOptions) {
    this.#options = options
  }

  /** Subscribes to changes. @returns a function that ends the subscription */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when `tenantId` was observed, on a resync, or when the signal aborts. It subscribes at once. */
  next(tenantId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        unsubscribe()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const unsubscribe = this.subscribe((change) => {
        if (change === 'resync' || (change.kind === 'observed' && change.subject === tenantId)) done()
      })
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }

  /** Polls until the signal aborts. After a lost connection it reconnects and reports a resync. */
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
          this.#options.onError(new Error('The connection of the change feed was lost.', { cause }))
          await sleep(reconnectMilliseconds)
        }
      }
    } finally {
      unsubscribe()
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const client = await openConnection({
      connectionString: this.#options.url,
      application_name: 'tenantry-change-feed',
      query_timeout: queryMilliseconds,
      keepAlive: true,
    })
    const lost = Promise.withResolvers<never>()
    // The connection may break while no call awaits this promise.
    lost.promise.catch(() => undefined)
    client.on('error', (error) => lost.reject(error))
    client.on('end', () => lost.reject(new Error('The connection ended.')))
    const stop = () => lost.reject(new Error('The change feed was stopped.'))
    signal.addEventListener('abort', stop)
    try {
      if (signal.aborted) return
      let last = await poll(client, noChanges)
      let seen = new Set<number>()
      let prunedAt = 0
      this.#report('resync')
      for (;;) {
        await Promise.race([this.#untilDue(), lost.promise])
        const next = await poll(client, last.horizon)
        if (next.at.getTime() - last.at.getTime() > maxGapMilliseconds) this.#report('resync')
        for (const [id, kind, subject] of next.changes) if (!seen.has(id)) this.#report({ kind, subject })
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

  /** Resolves at the next poll, or at once if this process has committed a change since the last one. */
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
  if (row === undefined) throw new Error('A poll of the changes returned no row.')
  return row
}
