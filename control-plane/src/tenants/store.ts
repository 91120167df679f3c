// The tenant store on the control database.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import { warmName } from './names.ts'
import {
  type Desired,
  type OperationKind,
  type SecretKind,
  type Status,
  type Tenant,
  alongsideGenerations,
} from './tenant.ts'
import type { NewTenant, TenantCreated, TenantState, TenantStore } from './tenant-store.ts'
import { recordChange } from '../platform/change-log.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import { brokenConstraint, type Database, type Prisma, type Transaction } from '../platform/database.ts'
import { fromOwnRate } from '../quotas/index.ts'
import { openOperation, incrementGeneration, shownTenant, withPlan } from './store-raise.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { toOperation } from './store-rows.ts'
import { changeDetail, changedColumns, operationOf } from './store-change.ts'
import { claimWarm, unclaimed } from './store-warm-claims.ts'

/** Homes in one shared database. With more, catalogs and dumps get slow. */
const homesPerDatabase = 1_000
/**
 * Free slots of a database from which creations do not wait for each other. It exceeds the number of concurrent
 * creations.
 */
const minFreeSlotsWithoutLock = 100

interface TenantStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

const tenantIds = /^t_[0-9a-f]{20}$/
const operationIds = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Creates the tenant store on the control database; `seal` encrypts the tenants' secrets. */
export function createTenantStore({ database, seal, now }: TenantStoreOptions): TenantStore {
  const make = async (transaction: Transaction, tenant: NewTenant): Promise<TenantCreated> => {
    const { id, name, plan, region, isolation, rateLimit, secrets } = tenant
    const sharedDatabaseId =
      isolation === 'schema-per-tenant' ? await sharedDatabaseWithRoom(transaction, region) : null
    const data = {
      id,
      name,
      planId: plan,
      regionId: region,
      isolation,
      sharedDatabaseId,
      ...fromOwnRate(rateLimit ?? null),
      createdAt: now(),
      updatedAt: now(),
    }
    const row = await transaction.tenant.create({ data, include: withPlan })
    await transaction.tenantSecret.createMany({ data: sealedSecrets(seal, id, secrets) })
    return { tenant: shownTenant(row), operation: await openOperation(transaction, id, 'create', 1, now()), secrets }
  }

  const shown = async (id: string, reader: Database | Transaction = database): Promise<Tenant | undefined> => {
    const row = await reader.tenant.findUnique({ where: { id }, include: withPlan })
    return row === null || row.name === warmName(id) ? undefined : shownTenant(row)
  }

  /** Returns a tenant with its operation in progress. */
  const state = async (transaction: Transaction, id: string): Promise<TenantState> => {
    const tenant = await shown(id, transaction)
    if (tenant === undefined) throw new ControlError('TENANT_NOT_FOUND', 'There is no such tenant.')
    const operation = await transaction.operation.findFirst({
      where: { tenantId: id, generation: tenant.generation, ...inProgress },
    })
    return { tenant, operation: operation === null ? undefined : toOperation(operation) }
  }

  /** Increments the generation, and wakes the controller after the commit. */
  const change = async (
    { transaction, audit }: RecordedWrite,
    id: string,
    kind: OperationKind,
    columns: Prisma.TenantUncheckedUpdateInput,
    detail: Prisma.InputJsonObject,
    action = kind,
  ) => {
    const result = await incrementGeneration(transaction, id, kind, columns, now())
    await recordChange(transaction, 'wanted', id)
    audit({ action: `tenant.${action}`, target: id, detail })
    return result
  }

  return {
    create: (tenant, { transaction, audit }) =>
      withNameCheck(tenant.name, async () => {
        const made = (await claimWarm(transaction, seal, tenant, now())) ?? (await make(transaction, tenant))
        const { id } = made.tenant
        const { name, plan, region, isolation, rateLimit } = tenant
        const own = rateLimit === undefined ? {} : changeDetail({ rateLimit })
        await recordChange(transaction, 'wanted', id)
        audit({ action: 'tenant.create', target: id, detail: { name, plan, region, isolation, ...own } })
        return made
      }),

    get: (id) => shown(id),

    async list(filter, { limit, cursor }) {
      const rows = await database.tenant.findMany({
        where: {
          ...(filter.plan === undefined ? {} : { planId: filter.plan }),
          ...(filter.region === undefined ? {} : { regionId: filter.region }),
          ...(filter.status === undefined ? {} : { status: filter.status satisfies Status }),
          // Prisma converts this to LIKE and escapes nothing.
          ...(filter.namePrefix === undefined
            ? {}
            : { name: { startsWith: filter.namePrefix.replaceAll(/[\\%_]/g, '\\$&') } }),
          ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, tenantIds))),
          id: { notIn: await unclaimed(database) },
        },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
        include: withPlan,
      })
      return toPage(rows, limit, shownTenant)
    },

    update: (id, changes, ifMatch, write) =>
      withNameCheck(changes.name ?? '', async () => {
        const tenant = await lockIdleTenant(write.transaction, id, ifMatch)
        // A check constraint limits this column to its values.
        const from = {
          desired: tenant.desired as Desired,
          resources: tenant.resources,
          planResources: tenant.plan.resources,
        }
        const [kind, columns] = [operationOf(changes, from), changedColumns(changes, from)]
        if (changes.name !== undefined) await rejectTaken(write.transaction, id, changes.name)
        return change(write, id, kind, columns, changeDetail(changes), 'update')
      }),

    rejectBusy: (id, ifMatch) =>
      database.$transaction(async (transaction) => {
        await rejectUnlessIdle(transaction, await readTenant(transaction, id, ifMatch))
      }),

    async requestDelete(id, purgeAfter, ifMatch, write) {
      const tenant = await lockTenant(write.transaction, id, ifMatch)
      const earliest = tenant.purgeAfter !== null && tenant.purgeAfter < purgeAfter ? tenant.purgeAfter : purgeAfter
      // The status changes at once, because a deletion cannot be reverted.
      const columns = {
        desired: 'deleted',
        status: 'deleting',
        purgeAfter: earliest,
        deleteRequestedAt: tenant.deleteRequestedAt ?? now(),
      }
      return change(write, id, 'delete', columns, { purge_after: earliest.toISOString() })
    },

    async rotateKeys(id, secrets, expireAt, write) {
      const { transaction } = write
      await lockIdleTenant(transaction, id, undefined)
      await transaction.tenantSecret.deleteMany({ where: { tenantId: id, expiresAt: { lte: now() } } })
      await transaction.tenantSecret.updateMany({
        where: {
          tenantId: id,
          kind: { in: Object.keys(secrets) },
          OR: [{ expiresAt: null }, { expiresAt: { gt: expireAt } }],
        },
        data: { expiresAt: expireAt },
      })
      await transaction.tenantSecret.createMany({ data: sealedSecrets(seal, id, secrets) })
      return change(write, id, 'rotate_keys', {}, { old_keys_expire_at: expireAt.toISOString() })
    },

    async restart(id, write) {
      await lockIdleTenant(write.transaction, id, undefined)
      return change(write, id, 'restart', { restarts: { increment: 1 } }, {})
    },

    async pause(id, write) {
      const tenant = await lockTenant(write.transaction, id, undefined)
      if (tenant.desired === 'paused') return state(write.transaction, id)
      await rejectUnlessIdle(write.transaction, tenant)
      if (tenant.desired !== 'active')
        throw new ControlError('NOT_ACTIVE', `Only an active tenant can be paused. This one is ${tenant.desired}.`)
      return change(write, id, 'pause', { desired: 'paused' }, {})
    },

    // A client waits for a wake, so it does not wait for operations in progress: their changes are carried out with it.
    async wake(id, write) {
      const { desired } = await lockTenant(write.transaction, id, undefined)
      if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
      if (desired !== 'paused') return state(write.transaction, id)
      return change(write, id, 'wake', { desired: 'active' }, {})
    },

    async getOperation(id) {
      const row = await database.operation.findUnique({ where: { id } })
      return row === null ? undefined : toOperation(row)
    },

    async listOperations(filter, { limit, cursor }) {
      const rows = await database.operation.findMany({
        where: { ...filter, ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, operationIds))) },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toOperation)
    },
  }
}

/** Operations in progress that block changes. Backups do not. */
const inProgress = {
  state: { in: ['pending', 'running'] },
  kind: { notIn: [...alongsideGenerations] },
} satisfies Prisma.OperationWhereInput

type TenantRow = Prisma.TenantGetPayload<{ include: typeof withPlan }>

/** Locks a tenant until the transaction's end, so that no concurrent change invalidates the row that is read here. */
async function lockTenant(transaction: Transaction, id: string, ifMatch: number | undefined): Promise<TenantRow> {
  await lock(transaction, `tenant:${id}`)
  return readTenant(transaction, id, ifMatch)
}

async function readTenant(transaction: Transaction, id: string, ifMatch: number | undefined): Promise<TenantRow> {
  const tenant = await transaction.tenant.findUnique({ where: { id }, include: withPlan })
  if (tenant === null) throw new ControlError('TENANT_NOT_FOUND', 'There is no such tenant.')
  if (ifMatch !== undefined && ifMatch !== tenant.generation) {
    throw new ControlError(
      'STALE_ETAG',
      `If-Match has the generation ${ifMatch}, but the tenant is at generation ${tenant.generation}.`,
    )
  }
  return tenant
}

async function lockIdleTenant(transaction: Transaction, id: string, ifMatch: number | undefined): Promise<TenantRow> {
  const tenant = await lockTenant(transaction, id, ifMatch)
  await rejectUnlessIdle(transaction, tenant)
  return tenant
}

/** Rejects a change during an operation. A failed tenant may be changed at any time, because the change may repair it. */
async function rejectUnlessIdle(transaction: Transaction, { id, desired, status }: TenantRow): Promise<void> {
  if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
  if (status === 'failed') return
  const busy = await transaction.operation.findFirst({ where: { tenantId: id, ...inProgress } })
  if (busy === null) return
  throw new ControlError('OPERATION_IN_PROGRESS', `The operation ${busy.id} (${busy.kind}) is in progress.`, {
    detail: { operation_id: busy.id },
  })
}

function sealedSecrets(seal: Seal, tenantId: string, secrets: Partial<Record<SecretKind, string>>) {
  return Object.entries(secrets).map(([kind, text]) => ({
    id: randomUUID(),
    tenantId,
    kind,
    sealed: seal.seal(text, `${tenantId}:${kind}`),
  }))
}

/**
 * Returns the region's first shared database with a free slot, or a new one. The last slots of a database are allocated
 * one after the other.
 */
async function sharedDatabaseWithRoom(transaction: Transaction, regionId: string): Promise<string> {
  const candidate = (await sharedDatabases(transaction, regionId)).find(({ room }) => room > 0)
  if (candidate !== undefined && candidate.room >= minFreeSlotsWithoutLock) return candidate.id
  await lock(transaction, `homes:${regionId}`)
  const databases = await sharedDatabases(transaction, regionId)
  const withRoom = databases.find(({ room }) => room > 0)
  if (withRoom !== undefined) return withRoom.id
  const name = `tenantry_homes_${databases.length + 1}`
  const made = await transaction.sharedDatabase.create({
    data: { id: `${regionId}-${databases.length + 1}`, regionId, name, capacity: homesPerDatabase },
  })
  return made.id
}

async function sharedDatabases(transaction: Transaction, regionId: string): Promise<{ id: string; room: number }[]> {
  const rows = await transaction.sharedDatabase.findMany({
    where: { regionId },
    orderBy: { createdAt: 'asc' },
    include: { _count: { select: { tenants: true } } },
  })
  return rows.map(({ id, capacity, _count: homes }) => ({ id, room: capacity - homes.tenants }))
}

/**
 * Rejects a name that is in use. Two tenants that exchange their names would otherwise wait for each other at the
 * unique index.
 */
async function rejectTaken(transaction: Transaction, id: string, name: string): Promise<void> {
  const holder = await transaction.tenant.findFirst({ where: { name, id: { not: id } }, select: { id: true } })
  if (holder !== null) throw nameTaken(name)
}

async function withNameCheck<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (brokenConstraint(cause) === 'tenants_name_key') {
      throw nameTaken(name, cause)
    }
    throw cause
  }
}

function nameTaken(name: string, cause?: unknown): ControlError {
  return new ControlError('NAME_TAKEN', `The name "${name}" is taken.`, { cause })
}
