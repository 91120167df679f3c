// One connection to Postgres for one task.
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { aliveConnection, withPassword, type PostgresUrl } from './superuser-url.ts'

/** The configuration of a connection, to a URL whose password may be replaced meanwhile. */
export type ConnectionConfig = Omit<pg.ClientConfig, 'connectionString'> & { connectionString: PostgresUrl }

const endMilliseconds = 5_000

/** Opens a connection, which the caller ends. Its errors are ignored until the caller listens to them. */
export function openConnection({ connectionString, ...config }: ConnectionConfig): Promise<pg.Client> {
  return withPassword(connectionString, async (href) => {
    const client = new pg.Client({
      connectionTimeoutMillis: 5_000,
      ...aliveConnection,
      ...config,
      connectionString: href,
    })
    // The work itself notices a lost connection.
    client.on('error', () => undefined)
    await client.connect()
    return client
  })
}

/** Opens a connection, runs `work` with it, and closes it. */
export async function connected<T>(config: ConnectionConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openConnection(config)
  try {
    return await work(client)
  } finally {
    await endConnection(client)
  }
}

/** Ends a connection. A server that does not confirm the end in time, because the link to it is broken, is not waited for. */
export async function endConnection(client: pg.Client): Promise<void> {
  // pg has no type for its socket.
  const { stream } = (client as pg.Client & { connection: { stream: Socket } }).connection
  const ended = new AbortController()
  delay(endMilliseconds, undefined, { signal: ended.signal }).then(
    () => stream.destroy(),
    () => undefined,
  )
  try {
    await client.end()
  } finally {
    ended.abort()
  }
}
