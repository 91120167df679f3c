// Runs SQL as the tenant's developer does.
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import type { TestTenant } from '#test/support/runtime.ts'

/** Runs statements on a connection with the tenant's `database_url`. */
export async function runSql(tenant: TestTenant, ...texts: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: tenant.home.adminUrl })
  await client.connect()
  try {
    for (const text of texts) await client.query(text)
  } finally {
    await client.end()
  }
}

/** The SQL of private channels that tenants run. */
export const messagesSql = (): Promise<string> =>
  readFile(new URL('../../../examples/realtime/messages.sql', import.meta.url), 'utf8')
