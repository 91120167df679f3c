// Requests moves of homes: to another shared database or region, back, and into services of the tenant's own or out of them. The
// leader carries them out.
import { dedicatedDatabase } from '../homes/index.ts'
import { recordChange } from '../platform/change-log.ts'
import { ControlError } from '../platform/errors.ts'
import type { Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { KeyLimit } from '../keys/index.ts'
import type { Isolation } from '../stacks/index.ts'
import { lockIdleTenant, readTenant, rejectUnlessIdle, type TenantRow } from './store-locks.ts'
import { openOperation, shownTenant, type MoveRequest } from './store-raise.ts'
import { moveToRevert } from './store-revertible.ts'
import {
  databaseWithRoom,
  rejectUnlessMovable,
  rejectUnlessReady,
  sharedDatabaseNamed,
} from './store-shared-databases.ts'
import type { TenantWrite } from './tenant-write.ts'

/** A write, and the time at which it is made. */
type MoveWrite = RecordedWrite & { at: Date }

/** Options of a move to another shared database. */
export interface MoveOptions {
  /** Whether the move can be reverted for some time. */
  isReversible?: boolean
  /** The shared database in which the home has to be; absent: any. */
  from?: { region: string; database: string }
}

/**
 * Requests the move of a home to another shared database of its region.
 * @throws ControlError NOT_SHARED, NOT_ACTIVE, SAME_DATABASE, UNKNOWN_DATABASE, DATABASE_FULL, OPERATION_IN_PROGRESS
 */
export async function requestMove(
  id: string,
  to: string,
  write: MoveWrite,
  { isReversible = true, from }: MoveOptions,
): Promise<TenantWrite> {
  const { transaction } = write
  if (from !== undefined) await rejectUnlessIn(transaction, id, from)
  await lockWithHomes(transaction, id)
  const tenant = await readTenant(transaction, id, undefined)
  rejectUnlessMovable(tenant, to)
  await rejectUnlessIdle(transaction, tenant)
  const target = await sharedDatabaseNamed(transaction, tenant.regionId, to)
  const move = { region: tenant.regionId, from: tenant.sharedDatabase?.name ?? '', to: target.name, isReversible }
  return begin(tenant, move, 'tenant.move', write)
}

/** Rejects a tenant that has left a database. @throws ControlError NOT_SHARED */
async function rejectUnlessIn(
  transaction: Transaction,
  id: string,
  { region, database }: NonNullable<MoveOptions['from']>,
): Promise<void> {
  const home = { id, regionId: region, sharedDatabase: { name: database } }
  if ((await transaction.tenant.count({ where: home })) > 0) return
  throw new ControlError('NOT_SHARED', `The home of the tenant is not in the database "${database}" any more.`)
}

/** The region to which a tenant moves, and an isolation model that the region supports. What is absent stays. */
export interface Relocation {
  region?: string | undefined
  isolation?: Isolation | undefined
}

/**
 * Requests that a tenant gets another isolation model, or another region, or both.
 * @param ifMatch generation that the caller expects
 * @throws ControlError SAME_ISOLATION, SAME_REGION, UNSUPPORTED_ISOLATION, NOT_ACTIVE, NOT_DEDICATED, STALE_ETAG,
 * OPERATION_IN_PROGRESS
 */
export async function requestRelocation(
  id: string,
  { region: toRegion, isolation: toIsolation }: Relocation,
  ifMatch: number | undefined,
  write: MoveWrite,
): Promise<TenantWrite> {
  const { transaction } = write
  await lockWithHomes(transaction, id, toRegion)
  const tenant = await lockIdleTenant(transaction, id, ifMatch)
  const { sharedDatabase, regionId: region } = tenant
  const isolation = tenant.isolation as Isolation
  const wanted = toIsolation ?? isolation
  if (toRegion === region) throw new ControlError('SAME_REGION', `The region of the tenant is "${region}" already.`)
  if (toRegion === undefined && wanted === isolation)
    throw new ControlError('SAME_ISOLATION', `The isolation of the tenant is ${wanted} already.`)
  rejectUnlessReady(tenant)
  if (wanted === 'schema-per-tenant') rejectOwnSettings(tenant)
  else if (toRegion === undefined) rejectArchive(tenant, wanted)
  else rejectUnlessShared(isolation, toRegion)
  const from = sharedDatabase?.name ?? dedicatedDatabase
  const to =
    wanted === 'schema-per-tenant' ? (await databaseWithRoom(transaction, toRegion ?? region)).name : dedicatedDatabase
  const models = wanted === isolation ? {} : { fromIsolation: isolation, toIsolation: wanted }
  const move = { region, ...(toRegion === undefined ? {} : { toRegion }), from, to, ...models }
  return begin(tenant, move, toRegion === undefined ? 'tenant.change_isolation' : 'tenant.change_region', write)
}

/** Rejects a move from services of the tenant's own into others of another region. @throws ControlError UNSUPPORTED_ISOLATION */
function rejectUnlessShared(isolation: Isolation, toRegion: string): void {
  if (isolation === 'schema-per-tenant') return
  throw new ControlError(
    'UNSUPPORTED_ISOLATION',
    `Services of a tenant's own cannot be exchanged for others in the region "${toRegion}" in one move. ` +
      'Move the tenant there with the isolation schema-per-tenant first.',
  )
}

/** Rejects settings that only a tenant with services of its own can have. @throws ControlError NOT_DEDICATED */
function rejectOwnSettings({ resources, pauseAfterSeconds, archiveDays }: TenantRow): void {
  const settings = { resources, pause_after_seconds: pauseAfterSeconds, archive_days: archiveDays }
  const field = Object.entries(settings).find(([, value]) => value !== null)?.[0]
  if (field === undefined) return
  throw new ControlError(
    'NOT_DEDICATED',
    `Field "${field}" requires a tenant with services of its own. Set it to null before the move.`,
  )
}

/** Rejects an archive of WAL, which ends with the server that has written it. @throws ControlError UNSUPPORTED_ISOLATION */
function rejectArchive({ archiveDays, isolation }: TenantRow, to: Isolation): void {
  if (archiveDays === null) return
  throw new ControlError(
    'UNSUPPORTED_ISOLATION',
    `A tenant with an archive cannot move from ${isolation} to ${to}. Set "archive_days" to null before the move.`,
  )
}

/** Locks a tenant and the homes of its region and of another one, so that no two transactions wait for each other. */
async function lockWithHomes(transaction: Transaction, id: string, otherRegion?: string): Promise<void> {
  const region = (await transaction.tenant.findUnique({ where: { id }, select: { regionId: true } }))?.regionId
  const homes = [region, otherRegion].flatMap((one) => (one === undefined ? [] : ([`homes:${one}`] as const)))
  await lock(transaction, `tenant:${id}`, ...homes)
}

/**
 * Requests that a home returns to the database that its last move has left.
 * @throws ControlError NO_MOVE_TO_REVERT, NOT_ACTIVE, OPERATION_IN_PROGRESS, KEY_LIMITED
 */
export async function requestRevert(id: string, keyLimit: KeyLimit, write: MoveWrite): Promise<TenantWrite> {
  const tenant = await lockIdleTenant(write.transaction, id, undefined)
  const revert = await moveToRevert(write.transaction, tenant, write.at)
  if (revert.toRegion !== undefined && (keyLimit.region !== undefined || keyLimit.tenantId !== undefined))
    throw new ControlError('KEY_LIMITED', 'A limited platform key cannot return a tenant to another region.')
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
  const { from, to, toIsolation: isolation, toRegion: region } = move
  const models = isolation === undefined ? {} : { isolation }
  audit({ action, target: tenant.id, detail: { from, to, ...models, ...(region === undefined ? {} : { region }) } })
  return { tenant: shownTenant(tenant), operation }
}
