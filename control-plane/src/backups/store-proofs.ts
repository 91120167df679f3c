// The schedule of proofs in the control database, and the records of what was proven.
import type { Database, Transaction } from '../platform/database.ts'
import { recordChange } from '../platform/change-log.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { Condition } from '../tenants/index.ts'
import type { Job } from './backup.ts'
import { reportFailure } from './failure-events.ts'
import type { ProvableTenant } from './proof-plan.ts'
import { openJob } from './store.ts'

/** Greatest ages over all tenants with a schedule, and how many of them have no such backup. */
export interface BackupAges {
  complete: AgeOfNewest
  proven: AgeOfNewest
}

interface AgeOfNewest {
  /** The age of the oldest tenant's newest one in seconds; 0 if no tenant has one. */
  seconds: number
  /** The number of tenants without any. */
  missing: number
}

interface Row {
  id: string
  seen_at: Date
  backup_id: string
  region: string
  verified_at: Date | null
  verify_error: string | null
}

/** The leader's reads and writes for scheduled proofs. Every write throws `LeadershipLost` when another one leads. */
export type ProofLedger = ReturnType<typeof createProofLedger>

/** Creates the leader's store of scheduled proofs, on the control database. */
export function createProofLedger(database: Database, now: () => Date) {
  return {
    /** Begins the schedule of the tenants that have their first complete backup. */
    follow: (epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [], async (transaction) => {
        await transaction.$executeRaw`
          update tenants set proof_seen_at = ${now()}
          where proof_seen_at is null and exists (
            select from backups where tenant_id = tenants.id and state = 'complete')`
      }),

    /** Returns the tenants that follow the schedule, with their newest complete backup. */
    async provable(): Promise<ProvableTenant[]> {
      const rows = await database.$queryRaw<Row[]>`
        select t.id, t.proof_seen_at as seen_at, b.id::text as backup_id, b.region_id as region, b.verified_at, b.verify_error
        from tenants t cross join lateral (
          select * from backups where tenant_id = t.id and state = 'complete' order by created_at desc limit 1) b
        where t.proof_seen_at is not null and t.desired in ('active', 'suspended', 'paused')
        order by t.id`
      return rows.map(({ id, seen_at: seenAt, backup_id: backupId, region, ...row }) => ({
        id,
        seenAt,
        newest: {
          id: backupId,
          region,
          verifiedAt: row.verified_at ?? undefined,
          verifyError: row.verify_error ?? undefined,
        },
      }))
    },

    /** Returns the regions with a verification in progress. */
    async busyRegions(): Promise<ReadonlySet<string>> {
      const rows = await database.$queryRaw<{ region: string }[]>`
        select distinct b.region_id as region from operations o join backups b on b.id = o.backup_id
        where o.kind = 'verify' and o.state in ('pending', 'running')`
      return new Set(rows.map(({ region }) => region))
    },

    /** Records that a planned time has no work. */
    skip: (tenantId: string, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        await transaction.tenant.updateMany({ where: { id: tenantId }, data: { proofSeenAt: now() } })
      }),

    /** Requests the verification of a backup, unless the backup was removed meanwhile. */
    prove: (tenantId: string, backupId: string, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        if ((await transaction.backup.count({ where: { id: backupId, state: 'complete' } })) === 0) return
        await transaction.tenant.updateMany({ where: { id: tenantId }, data: { proofSeenAt: now() } })
        const open = { backupId, kind: 'verify', state: { in: ['pending', 'running'] } }
        if ((await transaction.operation.count({ where: open })) === 0)
          await openJob(transaction, 'verify', tenantId, backupId, now())
      }),

    /** Returns the greatest ages of the newest backups of tenants with a schedule. */
    async ages(): Promise<BackupAges> {
      const [row] = await database.$queryRaw<
        { complete: number; proven: number; no_complete: number; no_proven: number }[]
      >`
        select
          coalesce(max(extract(epoch from ${now()} - complete_at)), 0)::float8 as complete,
          coalesce(max(extract(epoch from ${now()} - proven_at)), 0)::float8 as proven,
          (count(*) filter (where complete_at is null))::int as no_complete,
          (count(*) filter (where proven_at is null))::int as no_proven
        from (
          select proven_at,
            (select max(created_at) from backups b where b.tenant_id = t.id and b.state = 'complete') as complete_at
          from tenants t where backup_schedule is not null and desired in ('active', 'paused')
        ) newest`
      return {
        complete: { seconds: row?.complete ?? 0, missing: row?.no_complete ?? 0 },
        proven: { seconds: row?.proven ?? 0, missing: row?.no_proven ?? 0 },
      }
    },
  }
}

/**
 * Records the end of a verification: in the backup, as the tenant's condition `Backup`, as its last proven backup, and
 * as an event if it failed.
 * @param error the difference that was found, or why the work failed; null for a proven backup
 */
export async function recordProof(transaction: Transaction, job: Job, error: string | null, at: Date): Promise<void> {
  const { backup } = job
  await transaction.backup.updateMany({ where: { id: backup.id }, data: { verifiedAt: at, verifyError: error } })
  const { tenantId } = backup
  if (error === null)
    await transaction.tenant.updateMany({ where: { id: tenantId }, data: { provenAt: at, provenBackupId: backup.id } })
  await setCondition(transaction, tenantId, error === null ? [] : [failedCondition(backup.id, error, at)])
  await recordChange(transaction, 'observed', tenantId)
  if (error !== null) await reportFailure(transaction, 'backup.proof_failed', job, error, at)
}

function failedCondition(backupId: string, error: string, at: Date): Condition {
  const message = `The verification of the backup ${backupId} failed: ${error}`
  return { type: 'Backup', status: 'False', reason: 'ProofFailed', message, observed_at: at.toISOString() }
}

/** Replaces the condition `Backup`. The tenant's other conditions stay. */
async function setCondition(transaction: Transaction, tenantId: string, conditions: Condition[]): Promise<void> {
  await transaction.$executeRaw`
    update tenants set conditions = coalesce(
      (select jsonb_agg(one) from jsonb_array_elements(conditions) as one where one ->> 'type' <> 'Backup'), '[]')
        || ${JSON.stringify(conditions)}::jsonb
    where id = ${tenantId}`
}
