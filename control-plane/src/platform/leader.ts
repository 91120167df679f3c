// Leader election: the leading control plane holds an advisory lock of the control database, and writes under its own epoch.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { endConnection, openConnection } from './single-connection.ts'
import type { PostgresUrl } from './superuser-url.ts'

const leaderLock = 7_246_305_117

/** The lead of one control plane. Each change of leader increments `epoch`, which every write carries. */
export interface Leadership {
  epoch: bigint
  /** Signal that aborts when the lead is lost. */
  lost: AbortSignal
}

/** Times in milliseconds. */
interface LeaderTimes {
  /** Time between two signs of life of the leader. */
  beat: number
  /** Time without a sign of life after which Postgres ends the leader's session, so that another control plane can lead. */
  session: number
  /** Time between two attempts to get the lock. A query that waits for it would not notice a broken link. */
  poll: number
  /** Time in which Postgres must respond. */
  response: number
}

/** A host that loses its power, or its network, closes no connection. Postgres would keep the lock for hours. */
const times: LeaderTimes = { beat: 4_000, session: 20_000, poll: 500, response: 10_000 }

interface LeaderOptions {
  url: PostgresUrl
  onError: (error: Error) => void
  /** Other times than the usual ones. */
  times?: LeaderTimes
}

/**
 * Waits for the lead, does `work` while it lasts, and waits again, until aborted. The lock lasts as long as its
 * connection, which shows signs of life. The epoch prevents writes of an old leader that has lost the connection but still runs.
 */
export async function lead(
  { url, onError, times: { beat, session, poll, response } = times }: LeaderOptions,
  work: (leadership: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const stopped = () => signal.aborted
  while (!stopped()) {
    const lost = new AbortController()
    let client: Client | undefined
    const stop = () => {
      lost.abort()
      // This also ends the wait for the lock.
      client?.end().catch(() => undefined)
    }
    signal.addEventListener('abort', stop)
    try {
      client = await openConnection({
        connectionString: url,
        application_name: 'tenantry-leader',
        query_timeout: response,
      })
      client.on('error', () => lost.abort())
      client.on('end', () => lost.abort())
      // A write of the former leader may hold the row of the epoch. Its session ends, too.
      await client.query(`set idle_session_timeout = ${session}; set statement_timeout = ${response}`)
      while (!stopped() && !(await tryLock(client))) await sleep(poll, undefined, { signal }).catch(() => undefined)
      if (stopped()) break
      const { rows } = await client.query<{ epoch: string }>(
        'update installation set epoch = epoch + 1 returning epoch',
      )
      const leading = AbortSignal.any([lost.signal, signal])
      const over = new AbortController()
      const beating = showLife(client, beat, AbortSignal.any([leading, over.signal])).catch(() => lost.abort())
      try {
        await work({ epoch: BigInt(rows[0]?.epoch ?? 0), lost: leading })
      } finally {
        over.abort()
        await beating
      }
    } catch (cause) {
      if (!stopped()) onError(new Error('The lead was lost or could not be acquired.', { cause }))
    } finally {
      signal.removeEventListener('abort', stop)
      if (client !== undefined) void endConnection(client).catch(() => undefined)
    }
    if (!stopped()) await sleep(250)
  }
}

/** Takes the lock. @returns false if another control plane has it */
async function tryLock(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [leaderLock])
  return rows[0]?.held === true
}

/** Sends queries until aborted. @throws Error if the connection is lost */
async function showLife(client: Client, milliseconds: number, over: AbortSignal): Promise<void> {
  const isOver = () => over.aborted
  while (!isOver()) {
    await sleep(milliseconds, undefined, { signal: over }).catch(() => undefined)
    if (!isOver()) await client.query('select 1')
  }
}
