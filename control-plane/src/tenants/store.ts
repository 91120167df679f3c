// The tenant store on the control database.
import type { PublicKey } from '@tenantry/contract'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import { warmName } from './names.ts'
import {
  type Desired,
  type DriftRepair,
  type Operation,
  type OperationKind,
  type ServiceMove,
  type Switchover,
  type Tenant,
} from './tenant.ts'
import type { NewTenant, TenantCreated, TenantState, TenantChange, TenantWrite } from './tenant-write.ts'
import { recordChange } from '../platform/change-log.ts'
import { type Database, type Prisma, type Transaction } from '../platform/database.ts'
import type { KeyLimit } from '../keys/index.ts'
import { fromOwnRate } from '../quotas/index.ts'
import { openOperation, openRepair, incrementGeneration, shownTenant, withPlan } from './store-raise.ts'
import type { ServicePasswords } from '../homes/index.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { replaceSecrets, sealedSecrets, type RotatedKind } from './store-secrets.ts'
import { listOperations, type ListOrder, type OperationFilter } from './store-operations.ts'
import { toOperation, toPublicKeys } from './store-rows.ts'
import { changeDetail, changedColumns, operationOf } from './store-change.ts'
import { sharedDatabaseFor } from './store-shared-databases.ts'
import { inProgress, lockIdleTenant, lockTenant, readTenant, rejectUnlessIdle } from './store-locks.ts'
import { requestRelocation, type MoveOptions, type Relocation, requestMove, requestRevert } from './store-moves.ts'
import { revertDeletion } from './store-undelete.ts'
import { rejectTaken, withNameCheck } from './store-name-check.ts'
import { listTenants, type TenantFilter } from './store-list.ts'
import { claimWarm } from './store-warm-claims.ts'
import type { PageRequest, Page } from '../platform/page.ts'

interface TenantStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

/**
 * The store of tenants. It does not return unclaimed tenants that were created in advance. A tenant's `resources` are
 * those in effect, its own or its plan's; undefined without services of its own.
 */
export type TenantStore = ReturnType<typeof createTenantStore>

/** Creates the tenant store on the control database; `seal` encrypts the tenants' secrets. */
export function createTenantStore({ database, seal, now }: TenantStoreOptions) {
  const make = async (transaction: Transaction, tenant: NewTenant): Promise<TenantCreated> => {
    const { id, name, plan, region, isolation, rateLimit, secrets } = tenant
    const data = {
      id,
      name,
      planId: plan,
      regionId: region,
      isolation,
      sharedDatabaseId: await sharedDatabaseFor(transaction, tenant),
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
    if (tenant === undefined) throw tenantNotFound()
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
    action: string = kind,
    switchover?: Switchover,
  ) => {
    const result = await incrementGeneration(transaction, id, kind, columns, now(), switchover)
    await recordChange(transaction, 'wanted', id)
    audit({ action: `tenant.${action}`, target: id, detail })
    return result
  }

  return {
    /**
     * Creates a tenant, or claims a matching one that was created in advance, whose ID it then has.
     * @throws ControlError NAME_TAKEN
     */
    create: (tenant: NewTenant, { transaction, audit }: RecordedWrite): Promise<TenantCreated> =>
      withNameCheck(tenant.name, async () => {
        const made = (await claimWarm(transaction, seal, tenant, now())) ?? (await make(transaction, tenant))
        const { id } = made.tenant
        const { name, plan, region, isolation, rateLimit } = tenant
        const own = rateLimit === undefined ? {} : changeDetail({ rateLimit })
        await recordChange(transaction, 'wanted', id)
        audit({ action: 'tenant.create', target: id, detail: { name, plan, region, isolation, ...own } })
        return made
      }),

    /** Returns a tenant; undefined if it does not exist. */
    get: (id: string): Promise<Tenant | undefined> => shown(id),

    /**
     * Lists tenants that match every given field, the oldest first.
     * @param keyLimit what the caller's key is limited to
     */
    list: (filter: TenantFilter, keyLimit: KeyLimit, page: PageRequest): Promise<Page<Tenant>> =>
      listTenants(database, filter, keyLimit, page),

    /**
     * Changes a tenant and increments its generation.
     * @param ifMatch generation that the caller expects
     * @throws ControlError TENANT_NOT_FOUND, STALE_ETAG, OPERATION_IN_PROGRESS, TENANT_DELETED, NAME_TAKEN, NOT_SUSPENDED
     */
    update: (
      id: string,
      changes: TenantChange,
      ifMatch: number | undefined,
      write: RecordedWrite,
    ): Promise<TenantWrite> =>
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

    /**
     * Checks that a tenant can be changed, and changes nothing. @throws ControlError as `update` does for the tenant's
     * state
     */
    rejectBusy: (id: string, ifMatch: number | undefined): Promise<void> =>
      database.$transaction(async (transaction) => {
        await rejectUnlessIdle(transaction, await readTenant(transaction, id, ifMatch))
      }),

    /**
     * Requests the deletion, and supersedes operations in progress. The earliest `purgeAfter` of several requests
     * applies.
     */
    async requestDelete(
      id: string,
      purgeAfter: Date,
      ifMatch: number | undefined,
      write: RecordedWrite,
    ): Promise<TenantWrite> {
      const tenant = await lockTenant(write.transaction, id, ifMatch)
      const earliest = tenant.purgeAfter !== null && tenant.purgeAfter < purgeAfter ? tenant.purgeAfter : purgeAfter
      // The status changes at once, because the tenant is no longer served.
      const columns = {
        desired: 'deleted',
        desiredBeforeDelete: tenant.desired === 'deleted' ? tenant.desiredBeforeDelete : tenant.desired,
        status: 'deleting',
        purgeAfter: earliest,
        deleteRequestedAt: tenant.deleteRequestedAt ?? now(),
      }
      return change(write, id, 'delete', columns, { purge_after: earliest.toISOString() })
    },

    /**
     * Reverts a deletion within its grace time; a tenant that is not deleted stays unchanged.
     * @throws ControlError TENANT_NOT_FOUND, TENANT_PURGED once data may be destroyed, NOT_ACTIVE if the tenant had no
     * data yet
     */
    async undelete(id: string, write: RecordedWrite): Promise<TenantState> {
      const tenant = await lockTenant(write.transaction, id, undefined)
      if (tenant.desired !== 'deleted') return state(write.transaction, id)
      const detail = await revertDeletion(write.transaction, tenant, now())
      return change(write, id, 'undelete', {}, detail)
    },

    /** Stores new keys and secrets. The old ones stay valid until `expireAt`. @throws ControlError as `update` does, TOO_MANY_SECRETS */
    async rotateKeys(
      id: string,
      secrets: Partial<Record<RotatedKind, string>>,
      expireAt: Date,
      write: RecordedWrite,
    ): Promise<TenantWrite> {
      await lockIdleTenant(write.transaction, id, undefined)
      await replaceSecrets(write.transaction, seal, id, secrets, { now: now(), expireAt })
      const detail = { kinds: Object.keys(secrets), old_keys_expire_at: expireAt.toISOString() }
      return change(write, id, 'rotate_keys', {}, detail)
    },

    /** Stores a new password of `database_url`. The reconciler sets it, and ends the sessions of the old one. */
    async rotateDatabasePassword(id: string, password: string, write: RecordedWrite): Promise<TenantWrite> {
      await lockIdleTenant(write.transaction, id, undefined)
      await replaceSecrets(write.transaction, seal, id, { admin_password: password }, { now: now(), expireAt: now() })
      return change(write, id, 'rotate_database_password', { databasePasswordDue: true }, {})
    },

    /**
     * Stores new passwords of the services' logins. The reconciler sets them once the runtimes know them, and removes the
     * old ones. @throws ControlError as `update` does, TOO_MANY_SECRETS
     */
    async rotateServicePasswords(id: string, passwords: ServicePasswords, write: RecordedWrite): Promise<TenantWrite> {
      await lockIdleTenant(write.transaction, id, undefined)
      const secrets = { runtime_password: passwords.runtime, ddl_password: passwords.ddl }
      await replaceSecrets(write.transaction, seal, id, secrets, { now: now(), expireAt: undefined })
      return change(write, id, 'rotate_service_passwords', { servicePasswordsDue: true }, {})
    },

    /** Returns the public keys of a tenant's tokens; none for a tenant that does not exist. */
    async publicKeys(id: string): Promise<PublicKey[]> {
      const row = await database.tenant.findUnique({ where: { id }, select: { jwks: true } })
      return toPublicKeys(row?.jwks)
    },

    /** Replaces the public keys of a tenant's tokens. @throws ControlError as `update` does */
    async setPublicKeys(id: string, keys: PublicKey[], write: RecordedWrite): Promise<TenantWrite> {
      await lockIdleTenant(write.transaction, id, undefined)
      return change(write, id, 'update', { jwks: keys }, { kids: keys.map(({ kid }) => kid) }, 'set_jwks')
    },

    /** Restarts every service, one after the other if possible. @throws ControlError as `update` does */
    async restart(id: string, write: RecordedWrite): Promise<TenantWrite> {
      await lockIdleTenant(write.transaction, id, undefined)
      return change(write, id, 'restart', { restarts: { increment: 1 } }, {})
    },

    /**
     * Pauses a tenant; a paused one stays unchanged. @throws ControlError NOT_ACTIVE for a suspended tenant; otherwise as
     * `update` does
     */
    async pause(id: string, write: RecordedWrite): Promise<TenantState> {
      const tenant = await lockTenant(write.transaction, id, undefined)
      if (tenant.desired === 'paused') return state(write.transaction, id)
      await rejectUnlessIdle(write.transaction, tenant)
      if (tenant.desired !== 'active')
        throw new ControlError('NOT_ACTIVE', `Only an active tenant can be paused. This one is ${tenant.desired}.`)
      return change(write, id, 'pause', { desired: 'paused' }, {})
    },

    /**
     * Wakes a tenant and supersedes a pause in progress; other tenants stay unchanged. @throws ControlError
     * TENANT_NOT_FOUND, TENANT_DELETED
     */
    async wake(id: string, write: RecordedWrite): Promise<TenantState> {
      // A client waits for a wake, so it does not wait for operations in progress: their changes are carried out with it.
      const { desired } = await lockTenant(write.transaction, id, undefined)
      if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
      if (desired !== 'paused') return state(write.transaction, id)
      return change(write, id, 'wake', { desired: 'active' }, {})
    },

    /** Makes another member of an active tenant's cluster the primary. @throws ControlError NOT_ACTIVE, and as `update` does */
    async switchOver(id: string, switchover: Switchover, write: RecordedWrite): Promise<TenantWrite> {
      const { desired } = await lockIdleTenant(write.transaction, id, undefined)
      if (desired !== 'active')
        throw new ControlError('NOT_ACTIVE', `Only an active tenant has a primary. This one is ${desired}.`)
      return change(write, id, 'switchover', {}, { ...switchover }, 'switchover', switchover)
    },

    /**
     * Moves a service of a ready tenant's cluster to another host. The reconciler then creates it there.
     * @throws ControlError NOT_ACTIVE also if the service is not on its host any more, and as `update` does
     */
    async moveService(id: string, move: ServiceMove, write: RecordedWrite): Promise<TenantWrite> {
      const { desired, status } = await lockIdleTenant(write.transaction, id, undefined)
      if (desired !== 'active' || status !== 'ready')
        throw new ControlError('NOT_ACTIVE', `Only a ready tenant can be moved. This one is ${status}.`)
      const { service, from, to } = move
      const where = { tenantId: id, service, hostId: from }
      const { count } = await write.transaction.placement.updateMany({ where, data: { hostId: to } })
      if (count === 0)
        throw new ControlError('NOT_ACTIVE', `The service ${service} is not on the host "${from}" any more.`)
      return change(write, id, 'move_service', {}, { ...move })
    },

    /**
     * Repairs the drift of a tenant with services of its own: the targets, or everything.
     * @param fields what the operator has requested, for the audit log
     * @throws ControlError as `update` does
     */
    async repairDrift(
      id: string,
      repair: DriftRepair,
      fields: readonly string[],
      { transaction, audit }: RecordedWrite,
    ): Promise<TenantWrite> {
      const begun = await openRepair(transaction, await lockIdleTenant(transaction, id, undefined), repair, now())
      await recordChange(transaction, 'wanted', id)
      audit({ action: 'tenant.repair', target: id, detail: { fields: repair.targets === null ? 'all' : [...fields] } })
      return begun
    },

    /** Requests a move, as `requestMove` does. */
    move: (id: string, to: string, write: RecordedWrite, options: MoveOptions = {}): Promise<TenantWrite> =>
      requestMove(id, to, { ...write, at: now() }, options),

    /** Requests another isolation model or region, as `requestRelocation` does. */
    relocate: (id: string, to: Relocation, ifMatch: number | undefined, write: RecordedWrite): Promise<TenantWrite> =>
      requestRelocation(id, to, ifMatch, { ...write, at: now() }),

    /** Requests the revert of the last move, as `requestRevert` does. */
    revertMove: (id: string, keyLimit: KeyLimit, write: RecordedWrite): Promise<TenantWrite> =>
      requestRevert(id, keyLimit, { ...write, at: now() }),

    /** Returns an operation; undefined if it does not exist. */
    async getOperation(id: string): Promise<Operation | undefined> {
      const row = await database.operation.findUnique({ where: { id } })
      return row === null ? undefined : toOperation(row)
    },

    /**
     * Lists operations that match every given field, the oldest or the newest first.
     * @param keyLimit what the caller's key is limited to; with a region, operations of the tenants that exist in it
     */
    listOperations: (
      filter: OperationFilter,
      keyLimit: KeyLimit,
      page: PageRequest,
      order: ListOrder = 'oldest',
    ): Promise<Page<Operation>> => listOperations(database, filter, keyLimit, page, order),
  }
}
