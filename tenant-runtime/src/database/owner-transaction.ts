// Runs a transaction with the rights of a home's owner, on a connection of its own.
import pg from 'pg'
import { RuntimeError } from '../errors.ts'
import { notServed } from './connections.ts'
import type { HomeLogins } from './home-logins.ts'
import { RoundTripError } from './round-trip-error.ts'
import { sessionOptions } from './session-settings.ts'
import { toWire, type Statement } from './statement.ts'
import { withValidPassword } from './valid-password.ts'

/**
 * Runs one transaction with the owner's rights, on its own connection, which is closed afterwards.
 * @param begin the first statement of the transaction
 * @throws RoundTripError for an error of Postgres or the connection that `work` does not handle
 */
export async function runAsOwner<T>(
  { tenantId, ddlUrl, otherDdlUrls = [] }: HomeLogins,
  begin: Statement,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  if (ddlUrl === '') throw notServed()
  const broken: Error[] = []
  const client = await withValidPassword([ddlUrl, ...otherDdlUrls], async (connectionString) => {
    const opened = new pg.Client({
      connectionString,
      application_name: `tenantry:${tenantId}:ddl`,
      connectionTimeoutMillis: 5_000,
      query_timeout: 60_000,
      options: sessionOptions(
        { schema: tenantId, role: `${tenantId}_owner` },
        { statement_timeout: '60000', lock_timeout: '3000' },
      ),
    })
    opened.on('error', (error) => broken.push(error))
    await opened.connect()
    return opened
  }).catch((cause: unknown) => {
    throw new RuntimeError('DATABASE_UNAVAILABLE', 'The database does not respond.', { cause })
  })
  try {
    await client.query('begin')
    await client.query(begin.text, begin.values.map(toWire))
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    throw broken.length > 0 || error instanceof pg.DatabaseError
      ? new RoundTripError(error, { reusable: false, undone: false })
      : error
  } finally {
    // Without a COMMIT, closing is the rollback.
    await client.end()
  }
}
