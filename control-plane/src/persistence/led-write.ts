// A change of what should be that the leading control plane makes by itself: in line with the operators' writes, and
// refused when another has taken the lead.
import { LeadershipLost } from '../reconcile/reconcile-store.ts'
import type { OperationKind } from '../tenants/tenant.ts'
import { recordChange, reportCommit } from './change-log.ts'
import type { Database, Prisma, Transaction } from './database.ts'
import { raise as raiseRow } from './raise.ts'
import { serialise } from './recorded-write.ts'

/** @throws LeadershipLost when the epoch is no longer the leader's; nothing was written then */
export async function ledWrite<T>(database: Database, epoch: bigint, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  const result = await database.$transaction(
    async (transaction) => {
      await serialise(transaction)
      const leader = await transaction.$queryRaw<unknown[]>`select 1 from installation where epoch = ${epoch} for share`
      if (leader.length === 0) throw new LeadershipLost('another control plane leads')
      return work(transaction)
    },
    { maxWait: 10_000, timeout: 20_000 },
  )
  reportCommit(database)
  return result
}

/** Changes what should be of a tenant, and tells the controller. @returns the tenant's generation with it */
export async function raise(
  transaction: Transaction,
  id: string,
  kind: OperationKind,
  columns: Prisma.TenantUncheckedUpdateInput,
  at: Date,
): Promise<number> {
  const { tenant } = await raiseRow(transaction, id, kind, columns, at)
  await tellWanted(transaction, id)
  return tenant.generation
}

/** Wakes the controller for the tenant when the transaction has ended. */
export async function tellWanted(transaction: Transaction, id: string): Promise<void> {
  await recordChange(transaction, 'wanted', id)
}
