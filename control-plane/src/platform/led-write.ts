// A write of the leading control plane itself. It uses the same locks as operators' writes and is rejected if another control
// plane has taken the lead.
import { reportCommit } from './change-log.ts'
import type { Database, Transaction } from './database.ts'
import { requireLead } from './leader-fence.ts'
import { lock, type Lock } from './locks.ts'

/**
 * Runs work in a transaction of the leader.
 * @param locks locks of the objects that change
 * @throws LeadershipLost if the epoch is no longer the leader's, without any write
 */
export async function ledWrite<T>(
  database: Database,
  epoch: bigint,
  locks: readonly Lock[],
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const result = await database.$transaction(
    async (transaction) => {
      // The locks come first: a new leader waits for this transaction once it has locked the leader's row.
      await lock(transaction, ...locks)
      await requireLead(transaction, epoch)
      return work(transaction)
    },
    { maxWait: 10_000, timeout: 20_000 },
  )
  reportCommit(database)
  return result
}
