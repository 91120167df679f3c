// The API's store of backups in the control database.
import { randomBytes, randomUUID } from 'node:crypto'
import { jobKinds, type Backup, type BackupState } from './backup.ts'
import { keyBytes } from './encrypted-stream.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import type { Isolation } from '../stacks/index.ts'
import {
  type Operation,
  type OperationKind,
  type SecretKind,
  sharedDatabaseFor,
  toOperation,
  toTenant,
  type TenantWrite,
} from '../tenants/index.ts'
import type { PageRequest, Page } from '../platform/page.ts'
import { keyContext, toBackup } from './store-rows.ts'
import { recordChange } from '../platform/change-log.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import { brokenConstraint, type Database, type Prisma, type Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { uuidPattern } from '../platform/uuid.ts'
import type { BackupDescription } from './backup-record.ts'

const open = { in: ['pending', 'running'] }

export interface BackupWrite {
  backup: Backup
  operation: Operation
}

export interface RestoredTenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  secrets: Record<SecretKind, string>
}

interface BackupStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

/** The backups of tenants, and the requests to make, restore and verify them. Every write has its audit entry. */
export type BackupStore = ReturnType<typeof createBackupStore>

/** Creates the API's part of the store of backups, on the control database. */
export function createBackupStore({ database, seal, now }: BackupStoreOptions) {
  const listPage = async (where: Prisma.BackupWhereInput, { limit, cursor }: PageRequest) => {
    const rows = await database.backup.findMany({
      where: { AND: [where, cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuidPattern))] },
      orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      take: limit + 1,
    })
    return toPage(rows, limit, toBackup)
  }
  return {
    /**
     * Requests a backup of a tenant.
     * @throws ControlError TENANT_NOT_FOUND, TENANT_DELETED, NOT_ACTIVE, OPERATION_IN_PROGRESS
     */
    async request(tenantId: string, { transaction, audit }: RecordedWrite): Promise<BackupWrite> {
      await lock(transaction, `tenant:${tenantId}`)
      await rejectStopped(transaction, tenantId)
      await rejectSecond(transaction, tenantId)
      const backup = await newBackup(transaction, seal, tenantId, { trigger: 'request', plannedAt: null }, now())
      const operation = await openJob(transaction, 'backup', tenantId, backup.id, now())
      audit({ action: 'backup.create', target: tenantId, detail: { backup_id: backup.id } })
      return { backup: toBackup(backup), operation }
    },

    /** Returns a backup; undefined if the control database does not know it. */
    async get(id: string): Promise<Backup | undefined> {
      const row = await database.backup.findUnique({ where: { id } })
      return row === null ? undefined : toBackup(row)
    },

    /** Lists a tenant's backups, oldest first. The tenant may be deleted. */
    list: (tenantId: string, page: PageRequest): Promise<Page<Backup>> => listPage({ tenantId }, page),

    /** Returns the tenant's last proven backup, which may be removed; undefined for none, or without the tenant. */
    async lastProven(tenantId: string): Promise<{ backupId: string; at: Date } | undefined> {
      const row = await database.tenant.findUnique({ where: { id: tenantId } })
      return row?.provenAt == null || row.provenBackupId === null
        ? undefined
        : { backupId: row.provenBackupId, at: row.provenAt }
    },

    /** Lists the backups of all tenants, oldest first; only those of `state` when it is given. */
    listAll: (state: BackupState | undefined, page: PageRequest): Promise<Page<Backup>> =>
      listPage(state === undefined ? {} : { state }, page),

    /** Returns the IDs of all complete backups. */
    async completeIds(): Promise<string[]> {
      const rows = await database.backup.findMany({
        where: { state: 'complete' satisfies Backup['state'] },
        select: { id: true },
      })
      return rows.map(({ id }) => id)
    },

    /** Returns backups in the order of their IDs. */
    async getMany(ids: readonly string[]): Promise<Backup[]> {
      const rows = await database.backup.findMany({ where: { id: { in: [...ids] } }, orderBy: { id: 'asc' } })
      return rows.map(toBackup)
    },

    /**
     * Records a backup that the control database does not know. One that it has come to know stays as it is. No schedule
     * removes it.
     */
    async adopt(
      { description, key }: { description: BackupDescription; key: Uint8Array },
      { transaction, audit }: RecordedWrite,
    ): Promise<Backup> {
      const id = description.backup_id
      await lock(transaction, `backup:${id}`)
      const backup =
        (await transaction.backup.findUnique({ where: { id } })) ??
        (await transaction.backup.create({
          data: {
            id,
            tenantId: description.tenant_id,
            regionId: description.region,
            isolation: description.isolation,
            state: 'complete' satisfies Backup['state'],
            // It counts as requested by an operator, so that the tenant's schedule does not delete it.
            trigger: 'request' satisfies Backup['trigger'],
            key: sealedKey(seal, id, key),
            bytes: description.bytes,
            manifestHash: description.manifest_sha256,
            createdAt: new Date(description.created_at),
            finishedAt: new Date(description.finished_at),
          },
        }))
      audit({ action: 'backup.adopt', target: id, detail: { tenant_id: backup.tenantId } })
      return toBackup(backup)
    },

    /**
     * Records the decision to remove a backup that the control database does not know.
     * @throws ControlError BACKUP_IN_USE when it has come to know it
     */
    async recordUnknownRemoved(id: string, { transaction, audit }: RecordedWrite): Promise<void> {
      await lock(transaction, `backup:${id}`)
      if ((await transaction.backup.count({ where: { id } })) > 0)
        throw new ControlError('BACKUP_IN_USE', 'The backup was adopted meanwhile.')
      audit({ action: 'backup.delete', target: id, detail: { unknown: true } })
    },

    /**
     * Deletes a backup's row, with its key.
     * @throws ControlError BACKUP_NOT_FOUND, BACKUP_IN_USE
     */
    async remove(id: string, { transaction, audit }: RecordedWrite): Promise<Backup> {
      const backup = await lockBackup(transaction, id)
      const used = await transaction.operation.count({ where: { backupId: id, state: open } })
      if (backup.state === 'running' || used > 0)
        throw new ControlError('BACKUP_IN_USE', 'The backup is being made, restored or verified.')
      await transaction.backup.delete({ where: { id } })
      audit({ action: 'backup.delete', target: id, detail: { tenant_id: backup.tenantId } })
      return toBackup(backup)
    },

    /**
     * Requests the verification of a backup.
     * @throws ControlError BACKUP_NOT_FOUND, BACKUP_NOT_COMPLETE, OPERATION_IN_PROGRESS
     */
    async requestVerify(id: string, { transaction, audit }: RecordedWrite): Promise<BackupWrite> {
      const backup = await lockComplete(transaction, id)
      const again = await transaction.operation.findFirst({ where: { backupId: id, kind: 'verify', state: open } })
      if (again !== null) throw inProgress(again)
      const operation = await openJob(transaction, 'verify', backup.tenantId, id, now())
      audit({ action: 'backup.verify', target: id, detail: { tenant_id: backup.tenantId } })
      return { backup: toBackup(backup), operation }
    },

    /**
     * Requests a restore into the backup's own tenant.
     * @throws ControlError as `request` and `requestVerify`
     */
    async requestRestore(id: string, { transaction, audit }: RecordedWrite): Promise<BackupWrite> {
      const backup = await lockComplete(transaction, id)
      const { tenantId } = backup
      // The operations of a failed tenant may never end: its services cannot start before the restore.
      const hasFailed = (await transaction.tenant.count({ where: { id: tenantId, status: 'failed' } })) > 0
      await (hasFailed ? rejectSecond(transaction, tenantId) : rejectBusy(transaction, tenantId))
      await rejectStopped(transaction, tenantId, ['ready', 'failed'])
      const operation = await openJob(transaction, 'restore', backup.tenantId, id, now())
      audit({ action: 'backup.restore', target: id, detail: { tenant_id: backup.tenantId } })
      return { backup: toBackup(backup), operation }
    },

    /**
     * Requests a restore into a new tenant.
     * @throws ControlError as `requestVerify`; NAME_TAKEN
     */
    async requestRestoreInto(
      id: string,
      tenant: RestoredTenant,
      { transaction, audit }: RecordedWrite,
    ): Promise<TenantWrite> {
      await lockComplete(transaction, id)
      const at = now()
      const restored = await openRestoreInto(transaction, seal, tenant, id, at)
      const detail = { tenant_id: tenant.id, name: tenant.name, plan: tenant.plan, region: tenant.region }
      audit({ action: 'backup.restore', target: id, detail })
      return restored
    },
  }
}

/**
 * Inserts the tenant of a restore with its secrets, and opens the operation that fills it.
 * @throws ControlError NAME_TAKEN
 */
export async function openRestoreInto(
  transaction: Transaction,
  seal: Seal,
  tenant: RestoredTenant,
  backupId: string,
  at: Date,
): Promise<TenantWrite> {
  const row = await insertRestoring(transaction, tenant, at)
  await transaction.tenantSecret.createMany({
    data: Object.entries(tenant.secrets).map(([kind, text]) => ({
      id: randomUUID(),
      tenantId: tenant.id,
      kind,
      sealed: seal.seal(text, `${tenant.id}:${kind}`),
      createdAt: at,
    })),
  })
  const operation = await openJob(transaction, 'restore', tenant.id, backupId, at)
  await recordChange(transaction, 'wanted', tenant.id)
  return { tenant: toTenant(row), operation }
}

/**
 * Inserts the tenant of a restore.
 * @throws ControlError NAME_TAKEN
 */
async function insertRestoring(transaction: Transaction, tenant: RestoredTenant, at: Date) {
  const sharedDatabaseId = await sharedDatabaseFor(transaction, tenant)
  try {
    return await transaction.tenant.create({
      data: {
        id: tenant.id,
        name: tenant.name,
        planId: tenant.plan,
        regionId: tenant.region,
        isolation: tenant.isolation,
        sharedDatabaseId,
        desired: 'restoring',
        reason: 'its data is being restored',
        createdAt: at,
        updatedAt: at,
      },
      include: { sharedDatabase: true, plan: true },
    })
  } catch (cause) {
    if (brokenConstraint(cause) === 'tenants_name_key')
      throw new ControlError('NAME_TAKEN', `The name "${tenant.name}" is taken.`, { cause })
    throw cause
  }
}

/**
 * Rejects tenants that can't be backed up or restored. A backup needs a running home; a restore replaces a running or a
 * lost one.
 */
export async function rejectStopped(
  transaction: Transaction,
  tenantId: string,
  statuses: readonly string[] = ['ready'],
): Promise<void> {
  const tenant = await transaction.tenant.findUnique({ where: { id: tenantId } })
  if (tenant === null) throw tenantNotFound()
  if (tenant.desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
  if (tenant.desired !== 'active' || !statuses.includes(tenant.status))
    throw new ControlError('NOT_ACTIVE', `The tenant is ${tenant.status}. It must be ${statuses.join(' or ')}.`)
}

/** Rejects a second backup or restore of a tenant while one is in progress. */
async function rejectSecond(transaction: Transaction, tenantId: string): Promise<void> {
  const busy = await transaction.operation.findFirst({
    where: { tenantId, kind: { in: ['backup', 'restore'] }, state: open },
  })
  if (busy !== null) throw inProgress(busy)
}

/** Rejects a restore over a tenant that another operation is changing. */
export async function rejectBusy(transaction: Transaction, tenantId: string): Promise<void> {
  const busy = await transaction.operation.findFirst({
    where: { tenantId, state: open, kind: { not: 'verify' } },
  })
  if (busy !== null) throw inProgress(busy)
}

/** Returns the error of a request while another operation is in progress. */
export function inProgress({ id, kind }: { id: string; kind: string }): ControlError {
  return new ControlError('OPERATION_IN_PROGRESS', `The operation ${id} (${kind}) is in progress.`, {
    detail: { operation_id: id },
  })
}

async function foundBackup(transaction: Transaction, id: string) {
  const backup = await transaction.backup.findUnique({ where: { id } })
  if (backup === null) throw new ControlError('BACKUP_NOT_FOUND', 'There is no such backup.')
  return backup
}

/** Locks a backup for its use or removal, through the lock of its tenant, which never changes. */
async function lockBackup(transaction: Transaction, id: string) {
  const { tenantId } = await foundBackup(transaction, id)
  await lock(transaction, `tenant:${tenantId}`)
  return foundBackup(transaction, id)
}

async function lockComplete(transaction: Transaction, id: string) {
  const backup = await lockBackup(transaction, id)
  if (backup.state !== 'complete')
    throw new ControlError('BACKUP_NOT_COMPLETE', `The backup is ${backup.state}. It must be complete.`)
  return backup
}

function sealedKey(seal: Seal, backupId: string, key: Uint8Array) {
  return seal.seal(Buffer.from(key).toString('base64'), keyContext(backupId))
}

/** Inserts a backup with a new key. */
export async function newBackup(
  transaction: Transaction,
  seal: Seal,
  tenantId: string,
  cause: { trigger: 'request' | 'schedule'; plannedAt: Date | null; recoveredTo?: Date },
  at: Date,
) {
  const { regionId, isolation } = await transaction.tenant.findUniqueOrThrow({
    where: { id: tenantId },
    select: { regionId: true, isolation: true },
  })
  const id = randomUUID()
  const key = sealedKey(seal, id, randomBytes(keyBytes))
  return transaction.backup.create({ data: { id, tenantId, regionId, isolation, ...cause, key, createdAt: at } })
}

/** Opens an operation on a backup. It increments no generation, so the reconciler ignores it. */
export async function openJob(
  transaction: Transaction,
  kind: Extract<OperationKind, (typeof jobKinds)[number]>,
  tenantId: string,
  backupId: string,
  at: Date,
) {
  const row = await transaction.operation.create({
    data: { id: randomUUID(), tenantId, kind, generation: 0, backupId, createdAt: at },
  })
  await recordChange(transaction, 'observed', tenantId)
  return toOperation(row)
}
