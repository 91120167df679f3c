// Locks a tenant for a change, and rejects a change during an operation.
import type { Prisma, Transaction } from '../platform/database.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import { lock } from '../platform/locks.ts'
import { withPlan } from './store-raise.ts'
import { alongsideGenerations } from './tenant.ts'

/** Operations in progress that block changes. Backups do not. */
export const inProgress = {
  state: { in: ['pending', 'running'] },
  kind: { notIn: [...alongsideGenerations] },
} satisfies Prisma.OperationWhereInput

/** A tenant with the relations that a change needs. */
export type TenantRow = Prisma.TenantGetPayload<{ include: typeof withPlan }>

/** Locks a tenant until the transaction's end, so that no concurrent change invalidates the row that is read here. */
export async function lockTenant(
  transaction: Transaction,
  id: string,
  ifMatch: number | undefined,
): Promise<TenantRow> {
  await lock(transaction, `tenant:${id}`)
  return readTenant(transaction, id, ifMatch)
}

/** Reads a tenant. @throws ControlError TENANT_NOT_FOUND, STALE_ETAG */
export async function readTenant(
  transaction: Transaction,
  id: string,
  ifMatch: number | undefined,
): Promise<TenantRow> {
  const tenant = await transaction.tenant.findUnique({ where: { id }, include: withPlan })
  if (tenant === null) throw tenantNotFound()
  if (ifMatch !== undefined && ifMatch !== tenant.generation) {
    throw new ControlError(
      'STALE_ETAG',
      `If-Match has the generation ${ifMatch}, but the tenant is at generation ${tenant.generation}.`,
    )
  }
  return tenant
}

/** Locks a tenant of which no operation is in progress. @throws ControlError as `readTenant` and `rejectUnlessIdle` do */
export async function lockIdleTenant(
  transaction: Transaction,
  id: string,
  ifMatch: number | undefined,
): Promise<TenantRow> {
  const tenant = await lockTenant(transaction, id, ifMatch)
  await rejectUnlessIdle(transaction, tenant)
  return tenant
}

/** Rejects a change during an operation. A failed tenant may be changed at any time, because the change may repair it. */
export async function rejectUnlessIdle(transaction: Transaction, { id, desired, status }: TenantRow): Promise<void> {
  if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
  if (status === 'failed') return
  const busy = await transaction.operation.findFirst({ where: { tenantId: id, ...inProgress } })
  if (busy === null) return
  throw new ControlError('OPERATION_IN_PROGRESS', `The operation ${busy.id} (${busy.kind}) is in progress.`, {
    detail: { operation_id: busy.id },
  })
}
