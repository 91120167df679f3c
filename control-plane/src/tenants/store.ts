// The tenant store on the control database.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import { warmName } from './names.ts'
import { type Desired, type SecretKind, type Status, type Tenant, besideGenerations } from './tenant.ts'
import type { NewTenant, TenantCreated, TenantState, TenantStore } from './tenant-store.ts'
import type { WriteContext } from '../platform/write-context.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import { brokenConstraint, type Database, type Prisma, type Transaction } from '../platform/database.ts'
import { fromOwnRate } from '../quotas/index.ts'
import { openOperation, raise, shownTenant, withPlan } from './store-raise.ts'
import { recordedWrite, type Recorded } from '../platform/recorded-write.ts'
import { toOperation } from './store-rows.ts'
import { changeDetail, changedColumns, operationOf } from './store-change.ts'
import { claimWarm, unclaimed } from './store-warm-claims.ts'

/** Homes in one shared database; catalogs and dumps of more get slow. */
const homesPerDatabase = 1_000

interface TenantStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

const tenantIds = /^t_[0-9a-f]{20}$/
const operationIds = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function createTenantStore({ database, seal, now }: TenantStoreOptions): TenantStore {
  const write = <T>(context: WriteContext, work: (transaction: Transaction) => Promise<Recorded<T>>) =>
    recordedWrite(database, seal, now, context, work)

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

  const shown = async (id: string): Promise<Tenant | undefined> => {
    const row = await database.tenant.findUnique({ where: { id }, include: withPlan })
    return row === null || row.name === warmName(id) ? undefined : shownTenant(row)
  }

  /** As it is, with what is under way. */
  const state = async (id: string): Promise<TenantState> => {
    const tenant = await shown(id)
    if (tenant === undefined) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
    const operation = await database.operation.findFirst({
      where: { tenantId: id, generation: tenant.generation, ...underWay },
    })
    return { tenant, operation: operation === null ? undefined : toOperation(operation) }
  }

  const unlessDone = async (id: string, work: () => Promise<TenantState>): Promise<TenantState> =>
    work().catch((cause: unknown) => {
      if (cause instanceof NothingToDo) return state(id)
      throw cause
    })

  return {
    create: (tenant, context, answer) =>
      nameTakenOr(tenant.name, async () =>
        write(context, async (transaction) => {
          const result = (await claimWarm(transaction, seal, tenant, now())) ?? (await make(transaction, tenant))
          const { id } = result.tenant
          const { name, plan, region, isolation, rateLimit } = tenant
          const detail = {
            name,
            plan,
            region,
            isolation,
            ...(rateLimit === undefined ? {} : changeDetail({ rateLimit })),
          }
          return { result, audit: { action: 'tenant.create', target: id, detail }, changed: id, answer: answer(result) }
        }),
      ),

    get: shown,

    async list(filter, { limit, cursor }) {
      const rows = await database.tenant.findMany({
        where: {
          ...(filter.plan === undefined ? {} : { planId: filter.plan }),
          ...(filter.region === undefined ? {} : { regionId: filter.region }),
          ...(filter.status === undefined ? {} : { status: filter.status satisfies Status }),
          // Prisma makes a LIKE of it, and escapes nothing.
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

    update: (id, change, ifMatch, context) =>
      nameTakenOr(change.name ?? '', () =>
        write(context, async (transaction) => {
          const tenant = await lockIdleTenant(transaction, id, ifMatch)
          // A check constraint holds it to its values.
          const from = {
            desired: tenant.desired as Desired,
            resources: tenant.resources,
            planResources: tenant.plan.resources,
          }
          const result = await raise(transaction, id, operationOf(change, from), changedColumns(change, from), now())
          return { result, audit: { action: 'tenant.update', target: id, detail: changeDetail(change) }, changed: id }
        }),
      ),

    refuseBusy: (id, ifMatch) =>
      database.$transaction(async (transaction) => {
        await lockIdleTenant(transaction, id, ifMatch)
      }),

    requestDelete: (id, purgeAfter, ifMatch, context) =>
      write(context, async (transaction) => {
        const tenant = await lockTenant(transaction, id, ifMatch)
        const earliest = tenant.purgeAfter !== null && tenant.purgeAfter < purgeAfter ? tenant.purgeAfter : purgeAfter
        // Said at once: from here on there is no way back.
        const columns = {
          desired: 'deleted',
          status: 'deleting',
          purgeAfter: earliest,
          deleteRequestedAt: tenant.deleteRequestedAt ?? now(),
        }
        const result = await raise(transaction, id, 'delete', columns, now())
        const detail = { purge_after: earliest.toISOString() }
        return { result, audit: { action: 'tenant.delete', target: id, detail }, changed: id }
      }),

    rotateKeys: (id, secrets, expireAt, context, answer) =>
      write(context, async (transaction) => {
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
        const result = await raise(transaction, id, 'rotate_keys', {}, now())
        const detail = { old_keys_expire_at: expireAt.toISOString() }
        return {
          result,
          audit: { action: 'tenant.rotate_keys', target: id, detail },
          changed: id,
          answer: answer(result),
        }
      }),

    restart: (id, context, answer) =>
      write(context, async (transaction) => {
        await lockIdleTenant(transaction, id, undefined)
        const result = await raise(transaction, id, 'restart', { restarts: { increment: 1 } }, now())
        return {
          result,
          audit: { action: 'tenant.restart', target: id, detail: {} },
          changed: id,
          answer: answer(result),
        }
      }),

    pause: (id, context) =>
      unlessDone(id, async () =>
        write(context, async (transaction) => {
          const tenant = await lockTenant(transaction, id, undefined)
          if (tenant.desired === 'paused') throw new NothingToDo()
          await refuseUnlessIdle(transaction, tenant)
          if (tenant.desired !== 'active')
            throw new ControlError(
              'NOT_ACTIVE',
              `only an active tenant can be paused, and this one is ${tenant.desired}`,
            )
          const result = await raise(transaction, id, 'pause', { desired: 'paused' }, now())
          return { result, audit: { action: 'tenant.pause', target: id, detail: {} }, changed: id }
        }),
      ),

    // Somebody waits for it, so it does not wait for what is under way: what that has written is carried out with it.
    wake: (id, context) =>
      unlessDone(id, async () =>
        write(context, async (transaction) => {
          const { desired } = await lockTenant(transaction, id, undefined)
          if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'the tenant is being deleted')
          if (desired !== 'paused') throw new NothingToDo()
          const result = await raise(transaction, id, 'wake', { desired: 'active' }, now())
          return { result, audit: { action: 'tenant.wake', target: id, detail: {} }, changed: id }
        }),
      ),

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

/** Takes a transaction back in which there is nothing to write. */
class NothingToDo extends Error {}

/** Backups go on beside changes. */
const underWay = {
  state: { in: ['pending', 'running'] },
  kind: { notIn: [...besideGenerations] },
} satisfies Prisma.OperationWhereInput

type LockedTenant = Prisma.TenantGetPayload<{ include: typeof withPlan }>

/** Writers are serialised by the audit lock, so what one reads here is what it will change. */
async function lockTenant(transaction: Transaction, id: string, ifMatch: number | undefined): Promise<LockedTenant> {
  const tenant = await transaction.tenant.findUnique({ where: { id }, include: withPlan })
  if (tenant === null) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
  if (ifMatch !== undefined && ifMatch !== tenant.generation) {
    throw new ControlError(
      'STALE_ETAG',
      `If-Match names generation ${ifMatch}, but the tenant is at ${tenant.generation}`,
    )
  }
  return tenant
}

async function lockIdleTenant(
  transaction: Transaction,
  id: string,
  ifMatch: number | undefined,
): Promise<LockedTenant> {
  const tenant = await lockTenant(transaction, id, ifMatch)
  await refuseUnlessIdle(transaction, tenant)
  return tenant
}

/** A failed tenant may be changed at any time: that may be what mends it. */
async function refuseUnlessIdle(transaction: Transaction, { id, desired, status }: LockedTenant): Promise<void> {
  if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'the tenant is being deleted')
  if (status === 'failed') return
  const busy = await transaction.operation.findFirst({ where: { tenantId: id, ...underWay } })
  if (busy === null) return
  throw new ControlError('OPERATION_UNDER_WAY', `the operation ${busy.id} (${busy.kind}) is under way`, {
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

/** The region's first shared database with room; a new one when all are full. */
async function sharedDatabaseWithRoom(transaction: Transaction, regionId: string): Promise<string> {
  const databases = await transaction.sharedDatabase.findMany({
    where: { regionId },
    orderBy: { createdAt: 'asc' },
    include: { _count: { select: { tenants: true } } },
  })
  const roomy = databases.find((candidate) => candidate._count.tenants < candidate.capacity)
  if (roomy !== undefined) return roomy.id
  const name = `tenantry_homes_${databases.length + 1}`
  const made = await transaction.sharedDatabase.create({
    data: { id: `${regionId}-${databases.length + 1}`, regionId, name, capacity: homesPerDatabase },
  })
  return made.id
}

async function nameTakenOr<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (brokenConstraint(cause) === 'tenants_name_key') {
      throw new ControlError('NAME_TAKEN', `name "${name}" is taken`, { cause })
    }
    throw cause
  }
}
