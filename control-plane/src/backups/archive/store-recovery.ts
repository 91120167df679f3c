// The API's store of recovery to a point in time, in the control database.
import type { Database, Transaction } from '../../platform/database.ts'
import { ControlError } from '../../platform/errors.ts'
import { lock } from '../../platform/locks.ts'
import type { RecordedWrite } from '../../platform/recorded-write.ts'
import type { Seal } from '../../platform/seal.ts'
import type { TenantWrite } from '../../tenants/index.ts'
import {
  rejectBusy,
  newBackup,
  openJob,
  openRestoreInto,
  rejectStopped,
  type BackupWrite,
  type RestoredTenant,
} from '../store.ts'
import { toBackup } from '../store-rows.ts'
import { rangesOf, recoverySource, type Archive } from './archive.ts'
import { archivesOf } from './store-archives.ts'

/** The archives of a tenant, and how they were used. */
export interface Recovery {
  archives: Archive[]
  /** The last restore to a point in time that was compared; undefined without one. */
  lastProven: { to: Date; at: Date } | undefined
}

export type RecoveryStore = ReturnType<typeof createRecoveryStore>

/** Creates the API's store of recovery. Every write has its audit entry. */
export function createRecoveryStore({ database, seal, now }: { database: Database; seal: Seal; now: () => Date }) {
  const open = async (transaction: Transaction, tenantId: string, to: Date) => {
    if (recoverySource(await archivesOf(transaction, tenantId), to) === undefined)
      throw outside(await archivesOf(transaction, tenantId), to)
    return newBackup(transaction, seal, tenantId, { trigger: 'request', plannedAt: null, recoveredTo: to }, now())
  }
  return {
    /** Returns what is known of a tenant's archives. */
    async get(tenantId: string): Promise<Recovery> {
      const proven = await database.backup.findFirst({
        where: { tenantId, recoveredTo: { not: null }, verifiedAt: { not: null }, verifyError: null },
        orderBy: { verifiedAt: 'desc' },
      })
      const { recoveredTo: to, verifiedAt: at } = proven ?? {}
      return {
        archives: await archivesOf(database, tenantId),
        lastProven: to == null || at == null ? undefined : { to, at },
      }
    },

    /**
     * Requests a restore of a tenant to a moment, into the tenant itself.
     * @throws ControlError OUTSIDE_ARCHIVE, OPERATION_IN_PROGRESS, TENANT_NOT_FOUND, TENANT_DELETED, NOT_ACTIVE
     */
    async request(tenantId: string, to: Date, { transaction, audit }: RecordedWrite): Promise<BackupWrite> {
      await lock(transaction, `tenant:${tenantId}`)
      await rejectBusy(transaction, tenantId)
      await rejectStopped(transaction, tenantId)
      const backup = await open(transaction, tenantId, to)
      const operation = await openJob(transaction, 'restore', tenantId, backup.id, now())
      audit({ action: 'tenant.recover', target: tenantId, detail: { to: to.toISOString(), backup_id: backup.id } })
      return { backup: toBackup(backup), operation }
    },

    /**
     * Requests a restore of a tenant to a moment, into a new tenant.
     * @throws ControlError as `request`; NAME_TAKEN
     */
    async requestInto(
      tenantId: string,
      to: Date,
      tenant: RestoredTenant,
      { transaction, audit }: RecordedWrite,
    ): Promise<TenantWrite> {
      await lock(transaction, `tenant:${tenantId}`)
      await rejectStopped(transaction, tenantId)
      const backup = await open(transaction, tenantId, to)
      const restored = await openRestoreInto(transaction, seal, tenant, backup.id, now())
      const { id, name, plan } = tenant
      const detail = { to: to.toISOString(), backup_id: backup.id, tenant_id: id, name, plan }
      audit({ action: 'tenant.recover', target: tenantId, detail })
      return restored
    },
  }
}

function outside(archives: readonly Archive[], to: Date): ControlError {
  const ranges = rangesOf(archives).map(({ from, to }) => ({ from: from.toISOString(), to: to.toISOString() }))
  const existing = ranges.map(({ from, to }) => `${from} to ${to}`).join(', ')
  const allowed = existing === '' ? 'The tenant has no archive yet.' : `Allowed: ${existing}.`
  return new ControlError('OUTSIDE_ARCHIVE', `The archive does not cover ${to.toISOString()}. ${allowed}`, {
    detail: { ranges },
  })
}
