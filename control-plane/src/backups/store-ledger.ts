// The leader's ledger of backups in the control database.
import { type Backup, type Job, type JobKind, jobKinds } from './backup.ts'
import { OperationSuperseded } from './backup-error.ts'
import type { Seal } from '../platform/seal.ts'
import { type Desired, type Status, incrementGeneration, recordWanted } from '../tenants/index.ts'
import { keyContext, toBackup } from './store-rows.ts'
import { newBackup, openJob } from './store.ts'
import { recordProof } from './store-proofs.ts'
import { reportFailure } from './failure-events.ts'
import { recordChange } from '../platform/change-log.ts'
import type { Database, Prisma, Transaction } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { ScheduledTenant } from './schedule-plan.ts'

const open = { in: ['pending', 'running'] }

/** Events of failed jobs. The record of a verification has its own. */
const failureEvents = { backup: 'backup.failed', restore: 'backup.restore_failed', verify: undefined } as const

/** The leader's reads and writes of backups. Every write throws `LeadershipLost` when another control plane leads. */
export type BackupLedger = ReturnType<typeof createBackupLedger>

/** Creates the leader's part of the store of backups, on the control database. */
export function createBackupLedger(database: Database, seal: Seal, now: () => Date) {
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
    /** Returns the open jobs, oldest first. */
    async openJobs(): Promise<Job[]> {
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

    /**
     * Begins a job and increments its attempts.
     * @returns false when it is no longer needed, or when the reconciler has taken it over since it was read
     */
    begin: ({ operationId, tenantId }: Job, epoch: bigint): Promise<boolean> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        const { count } = await transaction.operation.updateMany({
          where: { id: operationId, state: open, generation: 0 },
          data: { state: 'running', attempts: { increment: 1 }, startedAt: now() },
        })
        return count > 0
      }),

    /**
     * Records the job's step.
     * @throws OperationSuperseded
     */
    step: (job: Job, step: string, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], (transaction) => change(transaction, job, { step })),

    /**
     * Ends the operation.
     * @throws OperationSuperseded
     */
    finish: (job: Job, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], (transaction) => change(transaction, job, ended())),

    /** Fails the operation, and the backup that it makes. A tenant that a restore was to create is removed. */
    fail: (job: Job, reason: string, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        const failed = { state: 'failed', error: reason, finishedAt: now() }
        const { count } = await transaction.operation.updateMany({
          where: { id: job.operationId, state: open },
          data: failed,
        })
        const event = failureEvents[job.kind]
        if (count > 0 && event !== undefined) await reportFailure(transaction, event, job, reason, now())
        // A restore to a point in time makes its own backup.
        if (job.kind !== 'verify')
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

    /**
     * Fails backups whose operation has ended without them, for example because it was superseded before it began.
     * @param running the operations whose jobs still run here, and record their end themselves
     */
    async failAbandoned(running: ReadonlySet<string>, epoch: bigint): Promise<void> {
      const rows = await database.$queryRaw<{ id: string; tenant_id: string }[]>`
        select b.id, b.tenant_id from backups b
        where b.state = 'running' and not exists (
          select from operations o where o.backup_id = b.id
            and (o.state in ('pending', 'running') or o.id = any(${[...running]}::uuid[])))`
      for (const { id, tenant_id: tenantId } of rows)
        await ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
          const error = 'The operation that makes the backup was superseded.'
          const data = { state: 'failed', error, finishedAt: now() }
          await transaction.backup.updateMany({ where: { id, state: 'running' }, data })
        })
    },

    /**
     * Completes the backup and its operation.
     * @returns the ids of older backups that were deleted, beyond the number that the tenant retains
     */
    completeBackup: (
      job: Job,
      { bytes, manifestHash }: { bytes: number; manifestHash: string },
      epoch: bigint,
    ): Promise<string[]> =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        await change(transaction, job, ended())
        await transaction.backup.update({
          where: { id: job.backup.id },
          data: { state: 'complete', bytes, manifestHash, finishedAt: now() },
        })
        return evictOld(transaction, job.tenantId)
      }),

    /** Completes the backup that a restore to a point in time has made. The operation continues with it. */
    completeRecovered: (
      job: Job,
      { bytes, manifestHash }: { bytes: number; manifestHash: string },
      epoch: bigint,
    ): Promise<Job> =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], async (transaction) => {
        await change(transaction, job, {})
        const data = { state: 'complete', bytes, manifestHash, finishedAt: now() }
        return { ...job, backup: toBackup(await transaction.backup.update({ where: { id: job.backup.id }, data })) }
      }),

    /** Records that a restored home was compared with the backup that was made from the tenant's archive. */
    recordRecovered: ({ backup, tenantId }: Job, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        await transaction.backup.updateMany({
          where: { id: backup.id },
          data: { verifiedAt: now(), verifyError: null },
        })
      }),

    /** Records a verification with the difference that it found; null for none. See `recordProof`. */
    recordVerified: (job: Job, error: string | null, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${job.tenantId}`], (transaction) =>
        recordProof(transaction, job, error, now()),
      ),

    /**
     * Activates the new tenant, whose data is restored. The operation continues as the tenant's own.
     * @throws OperationSuperseded
     */
    activate: (job: Job, epoch: bigint): Promise<void> =>
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

    /**
     * Increments the generation, so that the runtime evicts what it caches of the replaced data.
     * @param homeVersion the migrations of the restored home; undefined when the reconciler must apply the newest ones
     * @returns the new generation
     */
    renew: (tenantId: string, homeVersion: string | undefined, epoch: bigint): Promise<number> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        const { generation } = await transaction.tenant.update({
          where: { id: tenantId },
          // The version "restored" differs from the present one, whatever it is.
          data: { generation: { increment: 1 }, homeVersion: homeVersion ?? 'restored', updatedAt: now() },
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

    /**
     * Wakes a paused tenant.
     * @returns the new generation; undefined when it is not paused any more
     */
    wake: (tenantId: string, epoch: bigint): Promise<number | undefined> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        if ((await transaction.tenant.count({ where: { id: tenantId, desired: 'paused' } })) === 0) return undefined
        return incrementGeneration(transaction, tenantId, 'wake', { desired: 'active' }, now())
      }),

    /** Pauses the tenant, unless a request has changed it since that generation. */
    pauseAgain: (tenantId: string, generation: number, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        const unchanged = await transaction.tenant.count({ where: { id: tenantId, generation, desired: 'active' } })
        if (unchanged > 0) await incrementGeneration(transaction, tenantId, 'pause', { desired: 'paused' }, now())
      }),

    /** Returns the tenants with a schedule. */
    async scheduled(): Promise<ScheduledTenant[]> {
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
        where backup_schedule is not null and desired in ('active', 'paused')`
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

    /** Records that the schedule was followed up to that time. */
    recordSeen: (tenantId: string, schedule: string, at: Date, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        await transaction.tenant.updateMany({
          where: { id: tenantId },
          data: { backupSeenSchedule: schedule, backupSeenAt: at },
        })
      }),

    /** Opens the backup of a planned time, unless there is one already. */
    plan: (tenantId: string, schedule: string, plannedAt: Date, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        await transaction.tenant.update({
          where: { id: tenantId },
          data: { backupSeenSchedule: schedule, backupSeenAt: plannedAt },
        })
        if ((await transaction.backup.count({ where: { tenantId, plannedAt } })) > 0) return
        const { id } = await newBackup(transaction, seal, tenantId, { trigger: 'schedule', plannedAt }, now())
        await openJob(transaction, 'backup', tenantId, id, now())
      }),

    /** Returns the states of all backups, by ID. */
    async backupStates(): Promise<Map<string, Backup['state']>> {
      const rows = await database.backup.findMany({ select: { id: true, state: true } })
      // A check constraint limits the state to its values.
      return new Map(rows.map(({ id, state }) => [id, state as Backup['state']]))
    },

    /** Returns the key of a complete backup, 32 bytes, and the hash of its manifest; undefined if there is none. */
    async keyOf(backupId: string): Promise<{ key: Uint8Array; manifestHash: string } | undefined> {
      const row = await database.backup.findUnique({ where: { id: backupId, state: 'complete' } })
      if (row === null) return undefined
      const key = Buffer.from(seal.open(row.key, keyContext(backupId)), 'base64')
      return { key, manifestHash: row.manifestHash ?? '' }
    },

    /**
     * Returns the tenant's plan.
     * @throws OperationSuperseded when there is no such tenant
     */
    async planOf(tenantId: string): Promise<{ plan: string }> {
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
