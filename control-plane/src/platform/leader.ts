// Leader election: the leading control plane holds an advisory lock of the control database, and writes under its own epoch.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { openConnection } from './single-connection.ts'
import type { PostgresUrl } from './superuser-url.ts'

const leaderLock = 7_246_305_117

/** The lead of one control plane. Each change of leader increments `epoch`, which every write carries. */
export interface Leadership {
  epoch: bigint
  /** Signal that aborts when the lead is lost. */
  lost: AbortSignal
}

interface LeaderOptions {
  url: PostgresUrl
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
    const lost = new AbortController()
    let client: Client | undefined
    const stop = () => {
      lost.abort()
      // This also ends the wait for the lock.
      client?.end().catch(() => undefined)
    }
    signal.addEventListener('abort', stop)
    try {
      client = await openConnection({ connectionString: url, application_name: 'tenantry-leader', keepAlive: true })
      client.on('error', () => lost.abort())
      client.on('end', () => lost.abort())
      if (stopped()) break
      await client.query('select pg_advisory_lock($1)', [leaderLock])
      const { rows } = await client.query<{ epoch: string }>(
        'update installation set epoch = epoch + 1 returning epoch',
      )
      await work({ epoch: BigInt(rows[0]?.epoch ?? 0), lost: AbortSignal.any([lost.signal, signal]) })
    } catch (cause) {
      if (!stopped()) onError(new Error('The lead was lost or could not be acquired.', { cause }))
    } finally {
      signal.removeEventListener('abort', stop)
      client?.end().catch(() => undefined)
    }
    if (!stopped()) await sleep(250)
  }
}
