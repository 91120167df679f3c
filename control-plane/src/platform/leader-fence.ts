// The fence in front of the leader's writes: one whose epoch is over writes nothing.
import { Prisma } from '../../../prisma/client/client.ts'
import type { Transaction } from './database.ts'
import { LeadershipLost } from './leadership-lost.ts'

/**
 * A query with one row while the epoch is the leader's, and with none afterwards. Its transaction holds the row: whoever takes
 * the lead waits until it has ended. A single statement has it as its common table `leader`, writes only where that has a row,
 * and returns the table's count as `leads`.
 */
export function leaderRow(epoch: bigint): Prisma.Sql {
  return Prisma.sql`select 1 from installation where epoch = ${epoch} for share`
}

/** The row that such a statement returned. @throws LeadershipLost when it has written nothing */
export function ledRow<Row extends { leads: number }>(rows: readonly Row[]): Row {
  const [row] = rows
  if (row?.leads !== 1) throw new LeadershipLost('another control plane leads')
  return row
}

/** For transactions of several statements. @throws LeadershipLost when the epoch is no longer the leader's */
export async function requireLead(transaction: Transaction, epoch: bigint): Promise<void> {
  const rows = await transaction.$queryRaw<unknown[]>(leaderRow(epoch))
  if (rows.length === 0) throw new LeadershipLost('another control plane leads')
}
