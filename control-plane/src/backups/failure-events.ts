// The events that report failed backups, proofs and restores to operators.
import type { Transaction } from '../platform/database.ts'
import { emitOperatorEvent } from '../webhooks/index.ts'
import type { Job } from './backup.ts'

/** Writes the event of a job that failed, once. A tenant that is deleted, or that is gone, needs none. */
export async function reportFailure(
  transaction: Transaction,
  type: 'backup.failed' | 'backup.proof_failed' | 'backup.restore_failed',
  { operationId, tenantId, backup }: Pick<Job, 'operationId' | 'tenantId' | 'backup'>,
  message: string,
  at: Date,
): Promise<void> {
  const tenant = await transaction.tenant.findUnique({ where: { id: tenantId } })
  if (tenant === null || tenant.desired === 'deleted') return
  const { name, planId: plan, regionId: region } = tenant
  const about = { tenant_id: tenantId, name, plan, region, backup_id: backup.id, operation_id: operationId }
  await emitOperatorEvent(transaction, { type, tenantId, data: { ...about, message } }, at, `${type}:${operationId}`)
}
