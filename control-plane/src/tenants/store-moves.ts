// Requests moves of homes: to another shared database, back, and into services of the tenant's own. The leader carries them out.
import { dedicatedDatabase } from '../homes/index.ts'
import { recordChange } from '../platform/change-log.ts'
import { ControlError } from '../platform/errors.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Isolation } from '../stacks/index.ts'
import { lockIdleTenant, readTenant, rejectUnlessIdle, type TenantRow } from './store-locks.ts'
import { openOperation, shownTenant, type MoveRequest } from './store-raise.ts'
import { moveToRevert } from './store-revertible.ts'
import { rejectUnlessMovable, rejectUnlessReady, sharedDatabaseNamed } from './store-shared-databases.ts'
import type { TenantWrite } from './tenant-write.ts'

/** A write, and the time at which it is made. */
type MoveWrite = RecordedWrite & { at: Date }

/**
 * Requests the move of a home to another shared database of its region.
 * @param options whether the move can be reverted for some time
 * @throws ControlError NOT_SHARED, NOT_ACTIVE, SAME_DATABASE, UNKNOWN_DATABASE, DATABASE_FULL, OPERATION_IN_PROGRESS
 */
export async function requestMove(
  id: string,
  to: string,
  write: MoveWrite,
  { isReversible = true }: { isReversible?: boolean },
): Promise<TenantWrite> {
  const { transaction } = write
  // The lock of the region comes with that of the tenant, so that no two transactions wait for each other.
  const region = (await transaction.tenant.findUnique({ where: { id }, select: { regionId: true } }))?.regionId
  await lock(transaction, `tenant:${id}`, ...(region === undefined ? [] : ([`homes:${region}`] as const)))
  const tenant = await readTenant(transaction, id, undefined)
  rejectUnlessMovable(tenant, to)
  await rejectUnlessIdle(transaction, tenant)
  const target = await sharedDatabaseNamed(transaction, tenant.regionId, to)
  const move = { region: tenant.regionId, from: tenant.sharedDatabase?.name ?? '', to: target.name, isReversible }
  return begin(tenant, move, 'tenant.move', write)
}

/**
 * Requests that a tenant gets another isolation model.
 * @param to a model that the region supports
 * @param ifMatch generation that the caller expects
 * @throws ControlError SAME_ISOLATION, UNSUPPORTED_ISOLATION, NOT_ACTIVE, STALE_ETAG, OPERATION_IN_PROGRESS
 */
export async function requestIsolation(
  id: string,
  to: Isolation,
  ifMatch: number | undefined,
  write: MoveWrite,
): Promise<TenantWrite> {
  const tenant = await lockIdleTenant(write.transaction, id, ifMatch)
  const { isolation, sharedDatabase, regionId: region } = tenant
  if (isolation === to) throw new ControlError('SAME_ISOLATION', `The isolation of the tenant is ${to} already.`)
  if (sharedDatabase === null || to !== 'database-per-tenant')
    throw new ControlError(
      'UNSUPPORTED_ISOLATION',
      `A tenant cannot move from ${isolation} to ${to}. Possible: from schema-per-tenant to database-per-tenant.`,
    )
  rejectUnlessReady(tenant)
  const move = { region, from: sharedDatabase.name, to: dedicatedDatabase, toIsolation: to } as const
  return begin(tenant, move, 'tenant.change_isolation', write)
}

/**
 * Requests that a home returns to the database that its last move has left.
 * @throws ControlError NO_MOVE_TO_REVERT, NOT_ACTIVE, OPERATION_IN_PROGRESS
 */
export async function requestRevert(id: string, write: MoveWrite): Promise<TenantWrite> {
  const tenant = await lockIdleTenant(write.transaction, id, undefined)
  const revert = await moveToRevert(write.transaction, tenant, write.at)
  return begin(tenant, revert, 'tenant.revert_move', write)
}

async function begin(
  tenant: TenantRow,
  move: MoveRequest,
  action: string,
  { transaction, audit, at }: MoveWrite,
): Promise<TenantWrite> {
  const operation = await openOperation(transaction, tenant.id, 'move', 0, at, { move })
  await recordChange(transaction, 'observed', tenant.id)
  const { from, to, toIsolation: isolation } = move
  audit({ action, target: tenant.id, detail: { from, to, ...(isolation === undefined ? {} : { isolation }) } })
  return { tenant: shownTenant(tenant), operation }
}
