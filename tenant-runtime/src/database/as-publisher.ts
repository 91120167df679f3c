// The rights of the ddl login itself, within a transaction that has the owner's: what a reload publishes is in tables of the
// service, which the owner may not change.
import type pg from 'pg'

/** @param client of `ScopedDatabase.withOwner` */
export async function asPublisher<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('set local role none')
  const result = await work()
  // The login's own setting: the owner.
  await client.query('reset role')
  return result
}
