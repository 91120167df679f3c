// The sessions of tenants on one shared Postgres: reads them, and ends some. It holds one connection of the superuser, for
// which Postgres reserves room, with prepared statements that work while the table of locks is full.
import pg from 'pg'
import { endConnection, openConnection } from '../platform/single-connection.ts'
import type { PostgresUrl } from '../platform/superuser-url.ts'
import type { Sample, Session } from './judge-sessions.ts'
import { endSessionSql, roleNameSql, sampleSql, serverSql, versionSql, watchSettingsSql } from './sessions-sql.ts'

/** The sessions of tenants on one server. Each call throws if the server is unreachable, and connects again. */
export interface SessionServer {
  /** Reads all sessions of tenants. */
  sample(): Promise<Sample>
  /** Cancels the statement of a session, or terminates the session, unless it has ended. */
  end(session: Pick<Session, 'pid' | 'startedAt'>, kind: 'cancel' | 'terminate'): Promise<void>
  /** Runs a statement that returns one row with the JSON value `result`. */
  run(sql: string): Promise<unknown>
  close(): Promise<void>
}

interface SessionRow {
  pid: number
  role: string
  started_at: string
  is_active: boolean | null
  has_written: boolean
  memory_bytes: number
  temporary_bytes: number
  locks: number
  wal_bytes: number
  transaction_ms: number
  idle_ms: number
  snapshot: string | null
}

const roleForm = /^(t_[0-9a-f]{20})(?:_(admin|ddl))?$/
const queryTimeoutMs = 8_000

/**
 * Creates the access to the sessions of a server. It connects when it is first used.
 * @param postgresUrl the superuser's URL of the server's database `postgres`
 */
export function createSessionServer(postgresUrl: PostgresUrl): SessionServer {
  let connecting: Promise<pg.Client> | undefined
  let sampleText = ''
  /** Names of roles by their OIDs. */
  const roles = new Map<string, string>()

  const connect = async (): Promise<pg.Client> => {
    const client = await openConnection({
      connectionString: postgresUrl,
      query_timeout: queryTimeoutMs,
      application_name: 'tenantry-session-watch',
    })
    client.on('error', () => (connecting = undefined))
    try {
      await client.query(watchSettingsSql)
      const { rows } = await client.query<{ version: number }>(versionSql)
      sampleText = sampleSql(rows[0]?.version ?? 0)
      // The first execution fills the caches that the later ones need.
      for (const kind of ['cancel', 'terminate'] as const)
        await run(client, kind, endSessionSql(kind), [0, '-infinity'])
    } catch (error) {
      await client.end().catch(() => undefined)
      throw error
    }
    return client
  }

  const connected = async (): Promise<pg.Client> => {
    connecting ??= connect()
    try {
      return await connecting
    } catch (error) {
      connecting = undefined
      throw error
    }
  }

  const run = async <Row extends pg.QueryResultRow>(
    client: pg.Client,
    name: string,
    text: string,
    values: unknown[] = [],
  ): Promise<Row[]> => (await client.query<Row>({ name, text, values })).rows

  const query = async <Row extends pg.QueryResultRow>(
    name: string,
    text: string | (() => string),
    values: unknown[] = [],
  ) => {
    const client = await connected()
    try {
      return await run<Row>(client, name, typeof text === 'string' ? text : text(), values)
    } catch (error) {
      // A lost or slow connection is replaced. Errors of Postgres leave it usable.
      if (!(error instanceof pg.DatabaseError)) {
        connecting = undefined
        client.end().catch(() => undefined)
      }
      throw error
    }
  }

  const nameOf = async (role: string): Promise<string> => {
    const known = roles.get(role)
    if (known !== undefined) return known
    const [row] = await query<{ name: string }>('role', roleNameSql, [role])
    const name = row?.name ?? ''
    roles.set(role, name)
    return name
  }

  return {
    async sample() {
      const [server] = await query<{ lock_capacity: number; notification_share: number }>('server', serverSql)
      const rows = await query<SessionRow>('sample', () => sampleText)
      const sessions: Session[] = []
      for (const row of rows) {
        // A new role needs a lookup, which can fail while the table of locks is full. The other sessions are judged.
        const [, tenantId, login] = roleForm.exec(await nameOf(row.role).catch(() => '')) ?? []
        if (tenantId !== undefined)
          sessions.push(toSession(row, tenantId, login === 'admin' || login === 'ddl' ? login : 'runtime'))
      }
      return {
        sessions,
        lockCapacity: server?.lock_capacity ?? Infinity,
        notificationShare: server?.notification_share ?? 0,
      }
    },

    async end({ pid, startedAt }, kind) {
      await query(kind, endSessionSql(kind), [pid, startedAt])
    },

    async run(sql) {
      const { rows } = await (await connected()).query<{ result: unknown }>(sql)
      return rows[0]?.result
    },

    async close() {
      const current = connecting
      connecting = undefined
      await current?.then(endConnection).catch(() => undefined)
    },
  }
}

function toSession(row: SessionRow, tenantId: string, login: Session['login']): Session {
  return {
    pid: row.pid,
    startedAt: row.started_at,
    tenantId,
    login,
    isActive: row.is_active ?? false,
    hasWritten: row.has_written,
    memoryBytes: row.memory_bytes,
    temporaryBytes: row.temporary_bytes,
    locks: row.locks,
    walBytes: row.wal_bytes,
    transactionMs: row.transaction_ms,
    idleMs: row.idle_ms,
    snapshot: row.snapshot ?? undefined,
  }
}
