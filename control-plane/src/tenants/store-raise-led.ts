// What should be of a tenant, changed by the leading control plane by itself, within its own transaction.
import type { OperationKind } from './tenant.ts'
import { recordChange } from '../platform/change-log.ts'
import type { Prisma, Transaction } from '../platform/database.ts'
import { incrementGeneration as incrementRow } from './store-raise.ts'

/** Changes what should be of a tenant, and tells the controller. @returns the tenant's generation with it */
export async function incrementGeneration(
  transaction: Transaction,
  id: string,
  kind: OperationKind,
  columns: Prisma.TenantUncheckedUpdateInput,
  at: Date,
): Promise<number> {
  const { tenant } = await incrementRow(transaction, id, kind, columns, at)
  await recordWanted(transaction, id)
  return tenant.generation
}

/** Wakes the controller for the tenant when the transaction has ended. */
export async function recordWanted(transaction: Transaction, id: string): Promise<void> {
  await recordChange(transaction, 'wanted', id)
}
