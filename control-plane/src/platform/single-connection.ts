// One connection to Postgres for one task.
import pg from 'pg'
import { withPassword, type PostgresUrl } from './superuser-url.ts'

/** The configuration of a connection, to a URL whose password may be replaced meanwhile. */
export type ConnectionConfig = Omit<pg.ClientConfig, 'connectionString'> & { connectionString: PostgresUrl }

/** Opens a connection, which the caller ends. Its errors are ignored until the caller listens to them. */
export function openConnection({ connectionString, ...config }: ConnectionConfig): Promise<pg.Client> {
  return withPassword(connectionString, async (href) => {
    const client = new pg.Client({ connectionTimeoutMillis: 5_000, ...config, connectionString: href })
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
    await client.end()
  }
}
