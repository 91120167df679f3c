// Runs a statement with the tenant's own SQL login, in a session of its own that ends with it. The login's rights and limits are
// those of `database_url`, so a statement can do nothing that it could not do there.
import pg from 'pg'
import { guardMessages, type MessageGuard } from '../database/message-guard.ts'
import { sessionOptions } from '../database/session-settings.ts'
import { RuntimeError } from '../errors.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { BoundedQuery, type BoundedResult } from './bounded-query.ts'

/** A statement to run. */
export interface SqlRequest {
  text: string
  /** Whether the transaction may change something. */
  writes: boolean
  maxRows: number
  timeoutMilliseconds: number
  /** Aborts when the client has left. */
  signal: AbortSignal
}

/** The result of a statement, with the names of its columns' types. */
export interface SqlResult extends Omit<BoundedResult, 'columns'> {
  columns: { name: string; type: string }[]
}

/** Maximum bytes of the values of a result, and of the rows that arrive before a part of them is dropped. */
const maxResultBytes = 2_000_000
const maxReceivedBytes = 16_000_000
/** Milliseconds after the time limit of Postgres at which the runtime itself ends the session. */
const graceMilliseconds = 2_000
const connectMilliseconds = 5_000

/** SQLSTATEs of a login that is closed, or has another password than the control plane knows. */
const closedLogin = new Set(['28000', '28P01'])
/** Classes of SQLSTATEs for failures of Postgres or of the connection. */
const outages = new Set(['08', '53', '57P'])

/**
 * Runs a statement.
 * @throws RuntimeError INVALID_SQL for an error of the statement, SQL_LOGIN_CLOSED, ANSWER_TOO_LARGE, DATABASE_UNAVAILABLE
 */
export async function runSql({ id, manifest }: Tenant, request: SqlRequest): Promise<SqlResult> {
  const { text, writes, maxRows, timeoutMilliseconds, signal } = request
  const url = manifest.home.admin_url
  if (url === undefined)
    throw new RuntimeError('SQL_LOGIN_CLOSED', 'The control plane has not sent the SQL login yet. Try again later.')
  const client = new pg.Client({
    connectionString: url,
    application_name: `tenantry:${id}:console`,
    connectionTimeoutMillis: connectMilliseconds,
    options: sessionOptions(
      { schema: id, role: `${id}_owner` },
      {
        statement_timeout: String(timeoutMilliseconds),
        lock_timeout: '5000',
        idle_in_transaction_session_timeout: '10000',
        client_connection_check_interval: '2000',
        'app.tenant_id': id,
        'app.role': 'service_role',
      },
    ),
  })
  let lost: Error | undefined
  client.on('error', (error) => (lost ??= error))
  const end = () => client.end().catch(() => undefined)
  const limit = new AbortController()
  const timer = setTimeout(
    () => {
      limit.abort()
      destroy(client)
    },
    connectMilliseconds + timeoutMilliseconds + graceMilliseconds,
  )
  const abort = () => destroy(client)
  signal.addEventListener('abort', abort)
  try {
    await client.connect()
    const guard: MessageGuard = { onRow: undefined }
    guardMessages(client, guard)
    await client.query(writes ? 'begin' : 'begin read only')
    // From its first query on, a transaction that only reads cannot become one that writes.
    await client.query('select')
    let received = 0
    guard.onRow = (bytes) => {
      received += bytes
      if (!writes && received > maxReceivedBytes) return Promise.reject(new RuntimeError('ANSWER_TOO_LARGE', tooLarge))
      return undefined
    }
    const query = new BoundedQuery(text, { rows: maxRows, bytes: maxResultBytes, runsToEnd: writes })
    client.query(query as unknown as pg.Submittable)
    const result = await Promise.race([query.done, ended(client)])
    guard.onRow = undefined
    const types = await typeNames(client, result)
    await client.query(writes ? 'commit' : 'rollback')
    return {
      ...result,
      columns: result.columns.map(({ name, type }) => ({ name, type: types.get(type) ?? String(type) })),
    }
  } catch (error) {
    if (limit.signal.aborted)
      throw new RuntimeError('INVALID_SQL', 'The statement did not end in time.', { cause: error })
    throw toRuntimeError(lost instanceof RuntimeError ? lost : error)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    // Without a COMMIT, the end of the session is the rollback.
    await end()
  }
}

const tooLarge = 'The rows are too large. Select fewer columns or rows.'

/** Rejects when the connection ends. */
function ended(client: pg.Client): Promise<never> {
  return new Promise((_, reject) => {
    client.once('error', reject)
    client.once('end', () => reject(new Error('The connection ended.')))
  })
}

function destroy(client: pg.Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  stream.destroy()
}

async function typeNames(client: pg.Client, { columns }: BoundedResult): Promise<Map<number, string>> {
  if (columns.length === 0) return new Map()
  const { rows } = await client.query<{ oid: string; name: string }>({
    text: 'select t::text as oid, pg_catalog.format_type(t, null) as name from pg_catalog.unnest($1::pg_catalog.oid[]) t',
    values: [[...new Set(columns.map(({ type }) => type))]],
  })
  return new Map(rows.map(({ oid, name }) => [Number(oid), name]))
}

/** Maps an error. The tenant wrote the statement, so it receives Postgres' message about it. */
function toRuntimeError(error: unknown): unknown {
  if (error instanceof RuntimeError) return error
  if (!(error instanceof pg.DatabaseError) || error.code === undefined)
    return new RuntimeError('DATABASE_UNAVAILABLE', 'The database connection was lost.', { cause: error })
  const { code: sqlstate, message, detail, hint, position } = error
  if (closedLogin.has(sqlstate))
    return new RuntimeError(
      'SQL_LOGIN_CLOSED',
      "The tenant's SQL login is closed, or SQL has changed its password. An operator can replace the database password.",
      { cause: error },
    )
  if (outages.has(sqlstate.slice(0, 2)) || outages.has(sqlstate.slice(0, 3)))
    return new RuntimeError(
      sqlstate.startsWith('53') ? 'DATABASE_BUSY' : 'DATABASE_UNAVAILABLE',
      'The database has no room for the statement now. Retry the request.',
      { cause: error },
    )
  const extra = { sqlstate, details: detail ?? null, hint: hint ?? null, position: Number(position ?? 0) || null }
  return new RuntimeError('INVALID_SQL', message, { cause: error, extra })
}
