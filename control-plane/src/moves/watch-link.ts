// Ends the work of a move when Postgres stops responding. Without it, a query waits for a quarter of an hour on a link that
// loses all packets.
import pg from 'pg'
import type { Clock } from '../platform/clock.ts'
import { connected } from '../platform/single-connection.ts'
import { inDatabase, type PostgresUrl } from '../platform/superuser-url.ts'
import { MoveError } from './move-error.ts'

const probeMilliseconds = 3_000
/** Silence that ends the work: several probes, so that a restart of Postgres or a busy server does not. */
const silentMilliseconds = 15_000

/**
 * Calls `work` with a signal that aborts as `signal` does, and after 15 s in which one of the servers has not responded.
 * @param servers servers that a network reaches
 * @throws MoveError, temporary, after such a time
 */
export function whileLinked<T>(
  [server, ...others]: readonly PostgresUrl[],
  clock: Clock,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (server === undefined) return work(signal)
  return whileResponding(server, clock, signal, (linked) => whileLinked(others, clock, linked, work))
}

async function whileResponding<T>(
  server: PostgresUrl,
  clock: Clock,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const silent = new AbortController()
  let responded = clock.now().getTime()
  let isProbing = false
  const stop = clock.every(probeMilliseconds, () => {
    if (clock.now().getTime() - responded >= silentMilliseconds)
      silent.abort(new MoveError('The Postgres server did not respond for 15 s.', { isTemporary: true }))
    if (isProbing) return
    isProbing = true
    void responds(server).then((isResponse) => {
      isProbing = false
      if (isResponse) responded = clock.now().getTime()
    })
  })
  try {
    return await work(AbortSignal.any([signal, silent.signal]))
  } finally {
    stop()
  }
}

/** Whether the server responds to a new connection, if only with an error of its own. */
async function responds(server: PostgresUrl): Promise<boolean> {
  const config = {
    connectionString: inDatabase(server, 'postgres'),
    application_name: 'tenantry-moves',
    connectionTimeoutMillis: probeMilliseconds,
    query_timeout: probeMilliseconds,
  }
  return connected(config, (client) => client.query('select 1')).then(
    () => true,
    (cause: unknown) => cause instanceof pg.DatabaseError,
  )
}
