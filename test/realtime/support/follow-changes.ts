// Follows changes on a channel with raw frames.
import pg from 'pg'
import type { TestTenant } from '#test/support/runtime.ts'
import { RawSocket, type ReceivedFrame } from './raw-socket.ts'

/** A change as the protocol sends it. */
export interface Change {
  ids: number[]
  data: Record<string, unknown> & {
    columns: { name: string; type: string }[]
    type: string
    record?: Record<string, unknown>
    old_record?: Record<string, unknown>
  }
}

/** Returns the changes that have arrived. */
export const changesOf = (raw: RawSocket) =>
  raw.of('postgres_changes').map(({ payload }) => payload as unknown as Change)

/** Joins a channel. @param caller a user's ID, `service`, or undefined for an anonymous caller */
export async function follow(
  tenant: TestTenant,
  caller: string | undefined,
  ...wanted: object[]
): Promise<{ raw: RawSocket; reply: ReceivedFrame }> {
  const raw = await RawSocket.open(tenant, caller === 'service' ? { key: tenant.secretKey } : {})
  const token = caller === undefined || caller === 'service' ? {} : { access_token: tenant.token(caller) }
  const { reply } = await raw.join('realtime:notes', { postgres_changes: wanted }, token)
  return { raw, reply }
}

/** Opens a session with the tenant's own login, as `database_url` has it. */
export async function openSql(tenant: TestTenant): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: tenant.home.adminUrl })
  await client.connect()
  return client
}

/**
 * Runs statements with the tenant's own login. Followers read past the changes of a superuser whose transaction still runs,
 * because only the home's own logins write to its log.
 */
export async function runSql(tenant: TestTenant, ...statements: string[]): Promise<void> {
  const sql = await openSql(tenant)
  try {
    for (const statement of statements) await sql.query(statement)
  } finally {
    await sql.end()
  }
}
