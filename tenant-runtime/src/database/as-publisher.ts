// Runs work with the rights of the ddl login itself, within a transaction of the owner. A reload writes to tables of the
// service, which the owner may not change.
import type pg from 'pg'

/**
 * Runs the work.
 * @param client the client of `ScopedDatabase.withOwner`
 */
export async function asPublisher<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('set local role none')
  const result = await work()
  // The login's own setting is the owner.
  await client.query('reset role')
  return result
}
