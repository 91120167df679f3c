// Changes of a tenant's desired state that the leading control plane makes itself, within its own transaction.
import type { OperationKind } from './tenant.ts'
import { recordChange } from '../platform/change-log.ts'
import type { Prisma, Transaction } from '../platform/database.ts'
import { incrementGeneration as incrementTenantRow } from './store-raise.ts'

/** Changes a tenant's desired state and notifies the controller. @returns the new generation */
export async function incrementGeneration(
  transaction: Transaction,
  id: string,
  kind: OperationKind,
  columns: Prisma.TenantUncheckedUpdateInput,
  at: Date,
): Promise<number> {
  const { tenant } = await incrementTenantRow(transaction, id, kind, columns, at)
  await recordWanted(transaction, id)
  return tenant.generation
}

/** Wakes the controller for the tenant after the transaction's commit. */
export async function recordWanted(transaction: Transaction, id: string): Promise<void> {
  await recordChange(transaction, 'wanted', id)
}
