// Reverts the deletion of a tenant in its row, and writes the event that reports it.
import { ControlError } from '../platform/errors.ts'
import type { Prisma, Transaction } from '../platform/database.ts'
import { emitOperatorEvent } from '../webhooks/index.ts'
import type { Tenant as TenantRow } from '../../../prisma/client/client.ts'
import type { Desired, Status } from './tenant.ts'

/**
 * Gives a deleted tenant the desired state that it had. A paused tenant becomes active. The caller holds the tenant's
 * lock and increments the generation.
 * @returns the detail of the audit entry
 * @throws ControlError TENANT_PURGED, NOT_ACTIVE
 */
export async function revertDeletion(
  transaction: Transaction,
  tenant: TenantRow,
  at: Date,
): Promise<Prisma.InputJsonObject> {
  if (tenant.desiredBeforeDelete === ('restoring' satisfies Desired))
    throw new ControlError(
      'NOT_ACTIVE',
      'The tenant was deleted before its data was restored. Restore its backup into a new tenant.',
    )
  const desired = tenant.desiredBeforeDelete === 'suspended' ? 'suspended' : 'active'
  // The leader records the begin of a purge without the tenant's lock, in one statement on the same row: the later of
  // both finds its condition false.
  const { count } = await transaction.tenant.updateMany({
    where: { id: tenant.id, desired: 'deleted' satisfies Desired, purgeBegunAt: null, purgeAfter: { gt: at } },
    data: {
      desired: desired satisfies Desired,
      desiredBeforeDelete: null,
      status: 'pending' satisfies Status,
      reason: null,
      purgeAfter: null,
      deleteRequestedAt: null,
      lastDeletedAt: tenant.deleteRequestedAt,
      undeletedAt: at,
    },
  })
  if (count === 0)
    throw new ControlError(
      'TENANT_PURGED',
      `The deletion cannot be reverted, because the grace time of the tenant ended at ${endOfGrace(tenant, at)}.`,
    )
  const { id, name, planId: plan, regionId: region } = tenant
  const deletedAt = tenant.deleteRequestedAt?.toISOString() ?? null
  await emitOperatorEvent(
    transaction,
    { type: 'tenant.undeleted', tenantId: id, data: { tenant_id: id, name, plan, region, deleted_at: deletedAt } },
    at,
  )
  return { name, deleted_at: deletedAt, desired }
}

function endOfGrace({ purgeBegunAt, purgeAfter }: TenantRow, at: Date): string {
  return (purgeAfter ?? purgeBegunAt ?? at).toISOString()
}
