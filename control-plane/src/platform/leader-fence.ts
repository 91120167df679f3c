// The fence of the leader's writes: a former leader, whose epoch has ended, writes nothing.
import { Prisma } from '../../../prisma/client/client.ts'
import type { Transaction } from './database.ts'
import { LeadershipLost } from './leadership-lost.ts'

/**
 * Returns a query with one row while the epoch is the leader's, and none afterwards. Its transaction locks the row, so
 * a new leader waits for its end. A single statement uses it as its common table `leader`, writes only if that has a
 * row, and returns the table's count as `leads`.
 */
export function leaderRow(epoch: bigint): Prisma.Sql {
  return Prisma.sql`select 1 from installation where epoch = ${epoch} for share`
}

/** Returns the row of such a statement. @throws LeadershipLost if it has written nothing */
export function ledRow<Row extends { leads: number }>(rows: readonly Row[]): Row {
  const [row] = rows
  if (row?.leads !== 1) throw new LeadershipLost('Another control plane leads.')
  return row
}

/**
 * Checks the lead in a transaction of several statements. @throws LeadershipLost if the epoch is no longer the leader's
 */
export async function requireLead(transaction: Transaction, epoch: bigint): Promise<void> {
  const rows = await transaction.$queryRaw<unknown[]>(leaderRow(epoch))
  if (rows.length === 0) throw new LeadershipLost('Another control plane leads.')
}
