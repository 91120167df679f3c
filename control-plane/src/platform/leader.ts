// Leader election: the leading control plane holds an advisory lock of the control database, and writes under its own epoch.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

const leaderLock = 7_246_305_117

/** The lead of one control plane. Each change of leader increments `epoch`, which every write carries. */
export interface Leadership {
  epoch: bigint
  /** Signal that aborts when the lead is lost. */
  lost: AbortSignal
}

interface LeaderOptions {
  url: string
  onError: (error: Error) => void
}

/**
 * Waits for the lead, does `work` while it lasts, and waits again, until aborted. The lock lasts as long as its
 * connection. The epoch prevents writes of an old leader that has lost the connection but still runs.
 */
export async function lead(
  { url, onError }: LeaderOptions,
  work: (leadership: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const stopped = () => signal.aborted
  while (!stopped()) {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'tenantry-leader',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    })
    const lost = new AbortController()
    const stop = () => {
      lost.abort()
      // This also ends the wait for the lock.
      client.end().catch(() => undefined)
    }
    client.on('error', () => lost.abort())
    client.on('end', () => lost.abort())
    signal.addEventListener('abort', stop)
    try {
      await client.connect()
      await client.query('select pg_advisory_lock($1)', [leaderLock])
      const { rows } = await client.query<{ epoch: string }>(
        'update installation set epoch = epoch + 1 returning epoch',
      )
      await work({ epoch: BigInt(rows[0]?.epoch ?? 0), lost: AbortSignal.any([lost.signal, signal]) })
    } catch (cause) {
      if (!stopped()) onError(new Error('The lead was lost or could not be acquired.', { cause }))
    } finally {
      signal.removeEventListener('abort', stop)
      client.end().catch(() => undefined)
    }
    if (!stopped()) await sleep(250)
  }
}
