// Cleans a session after a tenant's own statement: removes everything that it, or a function that it called, has left in
// the session before another request uses the connection. DISCARD ALL would also remove our own prepared statements.
import type pg from 'pg'
import type { Connection } from './connections.ts'
import { RoundTrip } from './round-trip.ts'
import { sql } from './statement.ts'

const sweep = [
  // These come first, because settings of the statement may affect the others.
  sql('set session authorization default'),
  sql('reset all'),
  sql('close all'),
  sql('unlisten *'),
  sql('discard temp'),
  sql('discard sequences'),
  sql('select pg_catalog.pg_advisory_unlock_all()'),
  // Ours are prepared by the protocol. A tenant's PREPARE could use the name of one of ours.
  sql('select exists (select from pg_catalog.pg_prepared_statements where from_sql) as prepared'),
]

/**
 * Cleans the session.
 * @returns whether the connection is clean
 */
export async function sweepSession({ client, prepared }: Connection): Promise<boolean> {
  const roundTrip = new RoundTrip(sweep, prepared)
  // node-postgres takes any object with `submit` and the handlers; its types name only `submit`.
  client.query(roundTrip as unknown as pg.Submittable)
  try {
    const results = await roundTrip.done
    return results.at(-1)?.rows[0]?.['prepared'] === false
  } catch {
    return false
  }
}
