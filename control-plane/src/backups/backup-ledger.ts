// What the leading control plane reads and writes of backups. Every write carries its epoch, and throws `LeadershipLost`
// when another has taken the lead.
import type { Backup, Job } from './backup.ts'
import type { ScheduledTenant } from './schedule-plan.ts'

export interface BackupLedger {
  /** Oldest first. */
  openJobs(): Promise<Job[]>
  /** Raises its attempts. @returns false when nobody wants it any more */
  begin(job: Job, epoch: bigint): Promise<boolean>
  /** @throws NotWanted */
  step(job: Job, step: string, epoch: bigint): Promise<void>
  /** The operation has ended. @throws NotWanted */
  finish(job: Job, epoch: bigint): Promise<void>
  /** … or failed, and with it the backup that it is about; a tenant that was to be made by it is removed. */
  fail(job: Job, reason: string, epoch: bigint): Promise<void>
  /** Ends the operation too. @returns ids of backups that were forgotten, because the tenant keeps no more */
  completeBackup(job: Job, taken: { bytes: number; manifestHash: string }, epoch: bigint): Promise<string[]>
  recordVerified(job: Job, error: string | null, epoch: bigint): Promise<void>
  /** The new tenant's data is in place: it is begun, and the operation goes on as its own. @throws NotWanted */
  activate(job: Job, epoch: bigint): Promise<void>
  /** The tenant's data is another: its runtime must forget what it knew. @returns the new generation */
  renew(tenantId: string, epoch: bigint): Promise<number>
  /** @returns the new generation; undefined when it is not paused any more */
  wake(tenantId: string, epoch: bigint): Promise<number | undefined>
  /** Unless something was asked of it since that generation. */
  pauseAgain(tenantId: string, generation: number, epoch: bigint): Promise<void>
  /** Those with a schedule. */
  scheduled(): Promise<ScheduledTenant[]>
  /** The schedule is followed up to that time. */
  recordSeen(tenantId: string, schedule: string, at: Date, epoch: bigint): Promise<void>
  /** Opens the backup of a planned time; one that is there already stays the only one. */
  plan(tenantId: string, schedule: string, plannedAt: Date, epoch: bigint): Promise<void>
  /** Of all backups, by ID. */
  backupStates(): Promise<Map<string, Backup['state']>>
  /** @throws NotWanted when there is no such tenant */
  planOf(tenantId: string): Promise<{ plan: string }>
}
