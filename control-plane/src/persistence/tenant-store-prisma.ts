// The tenant store on the control database.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../errors.ts'
import type { Seal } from '../keys/seal.ts'
import type { Isolation, OperationKind, SecretKind, Status } from '../tenants/tenant.ts'
import type { TenantChange, TenantStore, TenantWrite, WriteContext } from '../tenants/tenant-store.ts'
import { afterPosition, decodeCursor, toPage } from './cursor.ts'
import { brokenConstraint, type Database, type Prisma, type Transaction } from './database.ts'
import { idempotencyContext, oldestAnswer, recordedWrite, type Recorded } from './recorded-write.ts'
import { toOperation, toTenant } from './rows.ts'

/** Homes in one shared database; catalogs and dumps of more get slow. */
const homesPerDatabase = 1_000

export interface TenantStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

const tenantIds = /^t_[0-9a-f]{20}$/
const operationIds = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const withDatabase = { sharedDatabase: true } as const

export function createTenantStore({ database, seal, now }: TenantStoreOptions): TenantStore {
  const write = <T>(context: WriteContext, work: (transaction: Transaction) => Promise<Recorded<T>>) =>
    recordedWrite(database, seal, now, context, work)

  return {
    create: (tenant, context, answer) =>
      nameTakenOr(tenant.name, async () =>
        write(context, async (transaction) => {
          const sharedDatabaseId = tenant.isolation === 'schema-per-tenant' ? await sharedDatabaseWithRoom(transaction, tenant.region) : null
          const row = await transaction.tenant.create({
            data: {
              id: tenant.id, name: tenant.name, planId: tenant.plan, regionId: tenant.region, isolation: tenant.isolation,
              sharedDatabaseId, createdAt: now(), updatedAt: now(),
            },
            include: withDatabase,
          })
          await transaction.tenantSecret.createMany({ data: sealedSecrets(seal, tenant.id, tenant.secrets) })
          const result = { tenant: toTenant(row), operation: await openOperation(transaction, tenant.id, 'create', 1, now()) }
          const detail = { name: tenant.name, plan: tenant.plan, region: tenant.region, isolation: tenant.isolation }
          return { result, audit: { action: 'tenant.create', target: tenant.id, detail }, changed: tenant.id, answer: answer(result) }
        }),
      ),

    async get(id) {
      const row = await database.tenant.findUnique({ where: { id }, include: withDatabase })
      return row === null ? undefined : toTenant(row)
    },

    async list(filter, { limit, cursor }) {
      const rows = await database.tenant.findMany({
        where: {
          ...(filter.plan === undefined ? {} : { planId: filter.plan }),
          ...(filter.region === undefined ? {} : { regionId: filter.region }),
          ...(filter.status === undefined ? {} : { status: filter.status satisfies Status }),
          // Prisma makes a LIKE of it, and escapes nothing.
          ...(filter.namePrefix === undefined ? {} : { name: { startsWith: filter.namePrefix.replaceAll(/[\\%_]/g, '\\$&') } }),
          ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, tenantIds))),
        },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
        include: withDatabase,
      })
      return toPage(rows, limit, toTenant)
    },

    update: (id, change, ifMatch, context) =>
      nameTakenOr(change.name ?? '', () =>
        write(context, async (transaction) => {
          const tenant = await lockTenant(transaction, id, ifMatch)
          if (tenant.desired === 'deleted') throw new ControlError('TENANT_DELETED', 'the tenant is being deleted')
          await refuseWhileBusy(transaction, tenant)
          const result = await raise(transaction, id, 'update', changedColumns(change), now())
          return { result, audit: { action: 'tenant.update', target: id, detail: { ...change } }, changed: id }
        }),
      ),

    requestDelete: (id, purgeAfter, ifMatch, context) =>
      write(context, async (transaction) => {
        const tenant = await lockTenant(transaction, id, ifMatch)
        const earliest = tenant.purgeAfter !== null && tenant.purgeAfter < purgeAfter ? tenant.purgeAfter : purgeAfter
        // Said at once: from here on there is no way back.
        const columns = { desired: 'deleted', status: 'deleting', purgeAfter: earliest, deleteRequestedAt: tenant.deleteRequestedAt ?? now() }
        const result = await raise(transaction, id, 'delete', columns, now())
        const detail = { purge_after: earliest.toISOString() }
        return { result, audit: { action: 'tenant.delete', target: id, detail }, changed: id }
      }),

    rotateKeys: (id, secrets, expireAt, context, answer) =>
      write(context, async (transaction) => {
        const tenant = await lockTenant(transaction, id, undefined)
        if (tenant.desired === 'deleted') throw new ControlError('TENANT_DELETED', 'the tenant is being deleted')
        await refuseWhileBusy(transaction, tenant)
        await transaction.tenantSecret.deleteMany({ where: { tenantId: id, expiresAt: { lte: now() } } })
        await transaction.tenantSecret.updateMany({
          where: { tenantId: id, kind: { in: Object.keys(secrets) }, OR: [{ expiresAt: null }, { expiresAt: { gt: expireAt } }] },
          data: { expiresAt: expireAt },
        })
        await transaction.tenantSecret.createMany({ data: sealedSecrets(seal, id, secrets) })
        const result = await raise(transaction, id, 'rotate_keys', {}, now())
        const detail = { old_keys_expire_at: expireAt.toISOString() }
        return { result, audit: { action: 'tenant.rotate_keys', target: id, detail }, changed: id, answer: answer(result) }
      }),

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

    async replay(context) {
      if (context.idempotency === undefined) return undefined
      const record = await database.idempotencyRecord.findUnique({
        where: { platformKeyId_key: { platformKeyId: context.actor.keyId, key: context.idempotency.key } },
      })
      if (record === null || record.answer === null || record.createdAt < oldestAnswer(now())) return undefined
      if (record.fingerprint !== context.idempotency.fingerprint) {
        throw new ControlError('IDEMPOTENCY_MISMATCH', 'this Idempotency-Key was used for another request')
      }
      return JSON.parse(seal.open(record.answer, idempotencyContext(context))) as unknown
    },

    async keepAnswer(context, answer) {
      if (context.idempotency === undefined) return
      await database.idempotencyRecord.updateMany({
        where: { platformKeyId: context.actor.keyId, key: context.idempotency.key },
        data: { answer: seal.seal(JSON.stringify(answer), idempotencyContext(context)) },
      })
    },
  }
}

type LockedTenant = NonNullable<Awaited<ReturnType<Transaction['tenant']['findUnique']>>>

/** Writers are serialised by the audit lock, so what is read here is what will be changed. */
async function lockTenant(transaction: Transaction, id: string, ifMatch: number | undefined): Promise<LockedTenant> {
  const tenant = await transaction.tenant.findUnique({ where: { id } })
  if (tenant === null) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
  if (ifMatch !== undefined && ifMatch !== tenant.generation) {
    throw new ControlError('STALE_ETAG', `If-Match names generation ${ifMatch}, but the tenant is at ${tenant.generation}`)
  }
  return tenant
}

/** A failed tenant may be changed: that may be what mends it. */
async function refuseWhileBusy(transaction: Transaction, tenant: LockedTenant): Promise<void> {
  if (tenant.status === 'failed') return
  const busy = await transaction.operation.findFirst({ where: { tenantId: tenant.id, state: { in: ['pending', 'running'] } } })
  if (busy === null) return
  throw new ControlError('OPERATION_UNDER_WAY', `the operation ${busy.id} (${busy.kind}) is under way`, { detail: { operation_id: busy.id } })
}

async function raise(
  transaction: Transaction,
  id: string,
  kind: OperationKind,
  columns: Prisma.TenantUncheckedUpdateInput,
  at: Date,
): Promise<TenantWrite> {
  const row = await transaction.tenant.update({
    where: { id },
    data: { ...columns, generation: { increment: 1 }, updatedAt: at },
    include: withDatabase,
  })
  await transaction.operation.updateMany({
    where: { tenantId: id, state: { in: ['pending', 'running'] } },
    data: { state: 'superseded', finishedAt: at },
  })
  return { tenant: toTenant(row), operation: await openOperation(transaction, id, kind, row.generation, at) }
}

async function openOperation(transaction: Transaction, tenantId: string, kind: OperationKind, generation: number, at: Date) {
  return toOperation(await transaction.operation.create({ data: { id: randomUUID(), tenantId, kind, generation, createdAt: at } }))
}

function changedColumns(change: TenantChange): Prisma.TenantUncheckedUpdateInput {
  return {
    ...(change.name === undefined ? {} : { name: change.name }),
    ...(change.plan === undefined ? {} : { planId: change.plan }),
    ...(change.isolation === undefined ? {} : { isolation: change.isolation satisfies Isolation }),
    ...(change.suspended === undefined ? {} : { desired: change.suspended ? 'suspended' : 'active' }),
  }
}

function sealedSecrets(seal: Seal, tenantId: string, secrets: Partial<Record<SecretKind, string>>) {
  return Object.entries(secrets).map(([kind, text]) => ({
    id: randomUUID(), tenantId, kind, sealed: seal.seal(text, `${tenantId}:${kind}`),
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
  const made = await transaction.sharedDatabase.create({ data: { id: `${regionId}-${databases.length + 1}`, regionId, name, capacity: homesPerDatabase } })
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
