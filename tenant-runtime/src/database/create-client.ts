// The client of a connection of the runtime's login, with the settings of its sessions.
import pg from 'pg'
import { sessionOptions } from './session-settings.ts'

/** Time limits in milliseconds. */
interface ClientLimits {
  connectMilliseconds: number
  statementMilliseconds: number
}

/** The servers that connections may lead to: only a primary, or any server, for sessions that cannot change anything. */
export type ServerKind = 'primary' | 'any'

/** Creates a client, which is not connected yet. @param url the URL of the tenant's login */
export function createClient(
  tenantId: string,
  url: string,
  { connectMilliseconds, statementMilliseconds }: ClientLimits,
  server: ServerKind = 'primary',
): pg.Client {
  return new pg.Client({
    connectionString: url,
    application_name: `tenantry:${tenantId}`,
    connectionTimeoutMillis: connectMilliseconds,
    keepAlive: true,
    options: sessionOptions(
      { schema: tenantId, role: 'none' },
      {
        statement_timeout: String(statementMilliseconds),
        lock_timeout: '0',
        idle_in_transaction_session_timeout: '10000',
        // Postgres ends a query whose caller has left.
        client_connection_check_interval: '2000',
        // It also ends the session of a lost host, whose transaction would otherwise hold its locks for hours.
        tcp_keepalives_idle: '30',
        tcp_keepalives_interval: '10',
        tcp_keepalives_count: '3',
        jit: 'off',
        ...(server === 'any' ? { default_transaction_read_only: 'on' } : {}),
      },
    ),
  })
}
