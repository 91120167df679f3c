// A change that the leading control plane makes by itself: in line with the operators' writes, and rejected when another has taken
// the lead.
import { reportCommit } from './change-log.ts'
import type { Database, Transaction } from './database.ts'
import { requireLead } from './leader-fence.ts'
import { lock, type Lock } from './locks.ts'

/**
 * @param locks what the change is about
 * @throws LeadershipLost when the epoch is no longer the leader's; nothing was written then
 */
export async function ledWrite<T>(
  database: Database,
  epoch: bigint,
  locks: readonly Lock[],
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const result = await database.$transaction(
    async (transaction) => {
      // First the locks: who takes the lead waits for this transaction once it has the leader's row.
      await lock(transaction, ...locks)
      await requireLead(transaction, epoch)
      return work(transaction)
    },
    { maxWait: 10_000, timeout: 20_000 },
  )
  reportCommit(database)
  return result
}
