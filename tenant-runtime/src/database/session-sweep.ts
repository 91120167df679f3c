// After a statement that others wrote: whatever it, or a function of the tenant's that it called, has left in the session is
// taken away before anybody else has the connection. DISCARD ALL would take our own prepared statements along.
import type pg from 'pg'
import type { Connection } from './connections.ts'
import { RoundTrip } from './round-trip.ts'
import { sql } from './statement.ts'

const sweep = [
  // First, because what was set may hinder the rest.
  sql('set session authorization default'),
  sql('reset all'),
  sql('close all'),
  sql('unlisten *'),
  sql('discard temp'),
  sql('discard sequences'),
  sql('select pg_catalog.pg_advisory_unlock_all()'),
  // Ours are prepared by the protocol; a statement of somebody else's could have the name of one.
  sql('select exists (select from pg_catalog.pg_prepared_statements where from_sql) as prepared'),
]

/** @returns whether the connection is as good as new */
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
