// The API's store of backups in the control database.
import { randomBytes, randomUUID } from 'node:crypto'
import { jobKinds, type Backup } from './backup.ts'
import type { BackupStore, RestoredTenant } from './backup-store.ts'
import { keyBytes } from './encrypted-stream.ts'
import { ControlError } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import { type OperationKind, toOperation, toTenant } from '../tenants/index.ts'
import type { PageRequest } from '../platform/page.ts'
import { keyContext, toBackup } from './store-rows.ts'
import { recordChange } from '../platform/change-log.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import { brokenConstraint, type Database, type Prisma, type Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'

const uuids = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const open = { in: ['pending', 'running'] }

interface BackupStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

/** Creates the API's part of the store of backups, on the control database. */
export function createBackupStore({ database, seal, now }: BackupStoreOptions): BackupStore {
  const listPage = async (where: Prisma.BackupWhereInput, { limit, cursor }: PageRequest) => {
    const rows = await database.backup.findMany({
      where: { AND: [where, cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuids))] },
      orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      take: limit + 1,
    })
    return toPage(rows, limit, toBackup)
  }
  return {
    async request(tenantId, { transaction, audit }) {
      await lock(transaction, `tenant:${tenantId}`)
      await rejectStopped(transaction, tenantId)
      await rejectSecond(transaction, tenantId)
      const backup = await newBackup(transaction, seal, tenantId, { trigger: 'request', plannedAt: null }, now())
      const operation = await openJob(transaction, 'backup', tenantId, backup.id, now())
      audit({ action: 'backup.create', target: tenantId, detail: { backup_id: backup.id } })
      return { backup: toBackup(backup), operation }
    },

    async get(id) {
      const row = await database.backup.findUnique({ where: { id } })
      return row === null ? undefined : toBackup(row)
    },

    list: (tenantId, page) => listPage({ tenantId }, page),

    listAll: (state, page) => listPage(state === undefined ? {} : { state }, page),

    async completeIds() {
      const rows = await database.backup.findMany({
        where: { state: 'complete' satisfies Backup['state'] },
        select: { id: true },
      })
      return rows.map(({ id }) => id)
    },

    async getMany(ids) {
      const rows = await database.backup.findMany({ where: { id: { in: [...ids] } }, orderBy: { id: 'asc' } })
      return rows.map(toBackup)
    },

    async adopt({ description, key }, { transaction, audit }) {
      const id = description.backup_id
      await lock(transaction, `backup:${id}`)
      const backup =
        (await transaction.backup.findUnique({ where: { id } })) ??
        (await transaction.backup.create({
          data: {
            id,
            tenantId: description.tenant_id,
            regionId: description.region,
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

    async recordUnknownRemoved(id, { transaction, audit }) {
      await lock(transaction, `backup:${id}`)
      if ((await transaction.backup.count({ where: { id } })) > 0)
        throw new ControlError('BACKUP_IN_USE', 'The backup was adopted meanwhile.')
      audit({ action: 'backup.delete', target: id, detail: { unknown: true } })
    },

    async remove(id, { transaction, audit }) {
      const backup = await lockBackup(transaction, id)
      const used = await transaction.operation.count({ where: { backupId: id, state: open } })
      if (backup.state === 'running' || used > 0)
        throw new ControlError('BACKUP_IN_USE', 'The backup is being made, restored or verified.')
      await transaction.backup.delete({ where: { id } })
      audit({ action: 'backup.delete', target: id, detail: { tenant_id: backup.tenantId } })
      return toBackup(backup)
    },

    async requestVerify(id, { transaction, audit }) {
      const backup = await lockComplete(transaction, id)
      const again = await transaction.operation.findFirst({ where: { backupId: id, kind: 'verify', state: open } })
      if (again !== null) throw inProgress(again)
      const operation = await openJob(transaction, 'verify', backup.tenantId, id, now())
      audit({ action: 'backup.verify', target: id, detail: { tenant_id: backup.tenantId } })
      return { backup: toBackup(backup), operation }
    },

    async requestRestore(id, { transaction, audit }) {
      const backup = await lockComplete(transaction, id)
      await rejectStopped(transaction, backup.tenantId, ['ready', 'failed'])
      await rejectSecond(transaction, backup.tenantId)
      const operation = await openJob(transaction, 'restore', backup.tenantId, id, now())
      audit({ action: 'backup.restore', target: id, detail: { tenant_id: backup.tenantId } })
      return { backup: toBackup(backup), operation }
    },

    async requestRestoreInto(id, tenant, { transaction, audit }) {
      await lockComplete(transaction, id)
      const at = now()
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
      const operation = await openJob(transaction, 'restore', tenant.id, id, at)
      await recordChange(transaction, 'wanted', tenant.id)
      const detail = { tenant_id: tenant.id, name: tenant.name, plan: tenant.plan, region: tenant.region }
      audit({ action: 'backup.restore', target: id, detail })
      return { tenant: toTenant(row), operation }
    },
  }
}

/**
 * Inserts the tenant of a restore.
 * @throws ControlError NAME_TAKEN
 */
async function insertRestoring(transaction: Transaction, tenant: RestoredTenant, at: Date) {
  try {
    return await transaction.tenant.create({
      data: {
        id: tenant.id,
        name: tenant.name,
        planId: tenant.plan,
        regionId: tenant.region,
        isolation: tenant.isolation,
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
async function rejectStopped(
  transaction: Transaction,
  tenantId: string,
  statuses: readonly string[] = ['ready'],
): Promise<void> {
  const tenant = await transaction.tenant.findUnique({ where: { id: tenantId } })
  if (tenant === null) throw new ControlError('TENANT_NOT_FOUND', 'There is no such tenant.')
  if (tenant.desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
  if (tenant.isolation === 'schema-per-tenant')
    throw new ControlError(
      'NOT_DEDICATED',
      "Only tenants with a database of their own can be backed up and restored. This tenant shares its region's database.",
    )
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

function inProgress({ id, kind }: { id: string; kind: string }): ControlError {
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
  cause: { trigger: 'request' | 'schedule'; plannedAt: Date | null },
  at: Date,
) {
  const { regionId } = await transaction.tenant.findUniqueOrThrow({
    where: { id: tenantId },
    select: { regionId: true },
  })
  const id = randomUUID()
  const key = sealedKey(seal, id, randomBytes(keyBytes))
  return transaction.backup.create({ data: { id, tenantId, regionId, ...cause, key, createdAt: at } })
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
