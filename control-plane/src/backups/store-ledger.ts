// The leader's ledger of backups in the control database.
import { type Backup, type Job, type JobKind, jobKinds } from './backup.ts'
import { OperationSuperseded } from './backup-error.ts'
import type { BackupLedger } from './backup-ledger.ts'
import type { Seal } from '../platform/seal.ts'
import { type Desired, type Status, incrementGeneration, recordWanted } from '../tenants/index.ts'
import { keyContext, toBackup } from './store-rows.ts'
import { newBackup, openJob } from './store.ts'
import { recordChange } from '../platform/change-log.ts'
import type { Database, Prisma, Transaction } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'

const open = { in: ['pending', 'running'] }

/** Creates the leader's part of the store of backups, on the control database. */
export function createBackupLedger(database: Database, seal: Seal, now: () => Date): BackupLedger {
  /**
   * Changes a running operation.
   * @throws OperationSuperseded
   */
  const change = async (
    transaction: Transaction,
    { operationId, tenantId }: Job,
    data: Prisma.OperationUpdateManyMutationInput,
  ) => {
    const { count } = await transaction.operation.updateMany({ where: { id: operationId, state: 'running' }, data })
    if (count === 0) throw new OperationSuperseded(`The operation ${operationId} is no longer running.`)
    await recordObserved(transaction, tenantId)
  }
  const ended = () => ({ state: 'succeeded', step: 'done', error: null, finishedAt: now() })

  return {
    async openJobs() {
      // The reconciler carries out operations that have a generation.
      const operations = await database.operation.findMany({
        where: { kind: { in: [...jobKinds] }, state: open, generation: 0, backupId: { not: null } },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      })
      const backups = await database.backup.findMany({
        where: { id: { in: operations.flatMap(({ backupId }) => backupId ?? []) } },
      })
      const byId = new Map(backups.map((backup) => [backup.id, backup]))
      return operations.flatMap(({ id, kind, tenantId, state, attempts, backupId }): Job[] => {
        const backup = byId.get(backupId ?? '')
        if (backup === undefined) return []
        const key = Buffer.from(seal.open(backup.key, keyContext(backup.id)), 'base64')
        return [
          {
            operationId: id,
            kind: kind as JobKind,
            tenantId,
            state: state as Job['state'],
            attempts,
            backup: toBackup(backup),
            key,
          },
        ]
      })
    },

    begin: ({ operationId, tenantId }, epoch) =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        const { count } = await transaction.operation.updateMany({
          where: { id: operationId, state: open },
          data: { state: 'running', attempts: { increment: 1 }, startedAt: now() },
        })
        return count > 0
      }),

    step: (job, step, epoch) =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], (transaction) => change(transaction, job, { step })),

    finish: (job, epoch) =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], (transaction) => change(transaction, job, ended())),

    fail: (job, reason, epoch) =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        const failed = { state: 'failed', error: reason, finishedAt: now() }
        await transaction.operation.updateMany({ where: { id: job.operationId, state: open }, data: failed })
        if (job.kind === 'backup')
          await transaction.backup.updateMany({ where: { id: job.backup.id, state: 'running' }, data: failed })
        if (job.kind === 'restore') {
          // A partial home is of no use: the tenant is deleted, and the operation has the reason.
          const gone = {
            desired: 'deleted',
            status: 'deleting',
            reason,
            purgeAfter: now(),
            deleteRequestedAt: now(),
            updatedAt: now(),
          }
          const { count } = await transaction.tenant.updateMany({
            where: { id: job.tenantId, desired: 'restoring' },
            data: { ...gone, generation: { increment: 1 } },
          })
          if (count > 0) await recordWanted(transaction, job.tenantId)
        }
        await recordObserved(transaction, job.tenantId)
      }),

    completeBackup: (job, { bytes, manifestHash }, epoch) =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        await change(transaction, job, ended())
        await transaction.backup.update({
          where: { id: job.backup.id },
          data: { state: 'complete', bytes, manifestHash, finishedAt: now() },
        })
        return evictOld(transaction, job.tenantId)
      }),

    recordVerified: (job, error, epoch) =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        await transaction.backup.updateMany({
          where: { id: job.backup.id },
          data: { verifiedAt: now(), verifyError: error },
        })
      }),

    activate: (job, epoch) =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        const tenant = await transaction.tenant.findUnique({ where: { id: job.tenantId } })
        if (tenant?.desired !== 'restoring')
          throw new OperationSuperseded(`The tenant ${job.tenantId} is not being restored any more.`)
        const generation = tenant.generation + 1
        await change(transaction, job, { generation })
        await transaction.tenant.update({
          where: { id: tenant.id },
          data: { desired: 'active', reason: null, generation, updatedAt: now() },
        })
        await recordWanted(transaction, tenant.id)
      }),

    renew: (tenantId, epoch) =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        const { generation } = await transaction.tenant.update({
          where: { id: tenantId },
          // The home may be of an older release. This version differs from the present one, whatever it is.
          data: { generation: { increment: 1 }, homeVersion: 'restored', updatedAt: now() },
          select: { generation: true },
        })
        // The new generation also completes the operations that were in progress when the home was lost.
        await transaction.operation.updateMany({
          where: { tenantId, state: { in: ['pending', 'running'] }, kind: { notIn: [...jobKinds] } },
          data: { state: 'superseded', finishedAt: now() },
        })
        await recordWanted(transaction, tenantId)
        return generation
      }),

    wake: (tenantId, epoch) =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        if ((await transaction.tenant.count({ where: { id: tenantId, desired: 'paused' } })) === 0) return undefined
        return incrementGeneration(transaction, tenantId, 'wake', { desired: 'active' }, now())
      }),

    pauseAgain: (tenantId, generation, epoch) =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        const unchanged = await transaction.tenant.count({ where: { id: tenantId, generation, desired: 'active' } })
        if (unchanged > 0) await incrementGeneration(transaction, tenantId, 'pause', { desired: 'paused' }, now())
      }),

    async scheduled() {
      const rows = await database.$queryRaw<ScheduledRow[]>`
        select id, backup_schedule as schedule, backup_seen_schedule as seen_schedule, backup_seen_at as seen_at, desired, status,
          exists (
            select from operations o
            where o.tenant_id = tenants.id and o.kind in ('backup', 'restore') and o.state in ('pending', 'running')
          ) as busy,
          (select max(finished_at) from operations o
            where o.tenant_id = tenants.id and o.kind = 'pause' and o.state = 'succeeded') as paused_at,
          (select max(created_at) from backups b where b.tenant_id = tenants.id and b.state = 'complete') as last_backup_at
        from tenants
        where backup_schedule is not null and isolation <> 'schema-per-tenant' and desired in ('active', 'paused')`
      return rows.map((row) => ({
        id: row.id,
        schedule: row.schedule,
        desired: row.desired,
        status: row.status,
        busy: row.busy,
        seen:
          row.seen_schedule === null || row.seen_at === null
            ? undefined
            : { schedule: row.seen_schedule, at: row.seen_at },
        pausedAt: row.paused_at ?? undefined,
        lastBackupAt: row.last_backup_at ?? undefined,
      }))
    },

    recordSeen: (tenantId, schedule, at, epoch) =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        await transaction.tenant.updateMany({
          where: { id: tenantId },
          data: { backupSeenSchedule: schedule, backupSeenAt: at },
        })
      }),

    plan: (tenantId, schedule, plannedAt, epoch) =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        await transaction.tenant.update({
          where: { id: tenantId },
          data: { backupSeenSchedule: schedule, backupSeenAt: plannedAt },
        })
        if ((await transaction.backup.count({ where: { tenantId, plannedAt } })) > 0) return
        const { id } = await newBackup(transaction, seal, tenantId, { trigger: 'schedule', plannedAt }, now())
        await openJob(transaction, 'backup', tenantId, id, now())
      }),

    async backupStates() {
      const rows = await database.backup.findMany({ select: { id: true, state: true } })
      // A check constraint limits the state to its values.
      return new Map(rows.map(({ id, state }) => [id, state as Backup['state']]))
    },

    async planOf(tenantId) {
      const tenant = await database.tenant.findUnique({ where: { id: tenantId }, select: { planId: true } })
      if (tenant === null) throw new OperationSuperseded(`The tenant ${tenantId} does not exist any more.`)
      return { plan: tenant.planId }
    },
  }
}

interface ScheduledRow {
  id: string
  schedule: string
  seen_schedule: string | null
  seen_at: Date | null
  desired: Desired
  status: Status
  busy: boolean
  paused_at: Date | null
  last_backup_at: Date | null
}

/**
 * Deletes old backups. Of those that the schedule made, the newest `backups_kept` stay, and always the newest complete
 * one; older failed ones are deleted too. A backup that an operator requested stays until an operator removes it.
 */
async function evictOld(transaction: Transaction, tenantId: string): Promise<string[]> {
  const tenant = await transaction.tenant.findUnique({ where: { id: tenantId }, select: { backupsKept: true } })
  if (tenant === null) return []
  const scheduled = await transaction.backup.findMany({
    where: { tenantId, trigger: 'schedule', state: 'complete' satisfies Backup['state'] },
    orderBy: { createdAt: 'desc' },
    select: { id: true, createdAt: true },
  })
  const oldestRetained = scheduled[Math.max(tenant.backupsKept, 1) - 1]
  if (oldestRetained === undefined) return []
  const used = await transaction.operation.findMany({
    where: { state: open, backupId: { not: null } },
    select: { backupId: true },
  })
  const old = await transaction.backup.findMany({
    where: {
      tenantId,
      trigger: 'schedule',
      state: { not: 'running' satisfies Backup['state'] },
      createdAt: { lt: oldestRetained.createdAt },
      id: { notIn: used.flatMap(({ backupId }) => backupId ?? []) },
    },
    select: { id: true },
  })
  const ids = old.map(({ id }) => id)
  await transaction.backup.deleteMany({ where: { id: { in: ids } } })
  return ids
}

async function recordObserved(transaction: Transaction, tenantId: string): Promise<void> {
  await recordChange(transaction, 'observed', tenantId)
}
