// The leader's reads and writes of backups. Every write carries the leader's epoch and throws `LeadershipLost` when
// another control plane leads.
import type { Backup, Job } from './backup.ts'
import type { ScheduledTenant } from './schedule-plan.ts'

export interface BackupLedger {
  /** Returns the open jobs, oldest first. */
  openJobs(): Promise<Job[]>
  /**
   * Begins a job and increments its attempts.
   * @returns false when it is no longer needed
   */
  begin(job: Job, epoch: bigint): Promise<boolean>
  /**
   * Records the job's step.
   * @throws OperationSuperseded
   */
  step(job: Job, step: string, epoch: bigint): Promise<void>
  /**
   * Ends the operation.
   * @throws OperationSuperseded
   */
  finish(job: Job, epoch: bigint): Promise<void>
  /** Fails the operation, and the backup that it makes. A tenant that a restore was to create is removed. */
  fail(job: Job, reason: string, epoch: bigint): Promise<void>
  /**
   * Completes the backup and its operation.
   * @returns the ids of older backups that were deleted, beyond the number that the tenant retains
   */
  completeBackup(job: Job, taken: { bytes: number; manifestHash: string }, epoch: bigint): Promise<string[]>
  recordVerified(job: Job, error: string | null, epoch: bigint): Promise<void>
  /**
   * Activates the new tenant, whose data is restored. The operation continues as the tenant's own.
   * @throws OperationSuperseded
   */
  activate(job: Job, epoch: bigint): Promise<void>
  /**
   * Increments the generation, so that the runtime evicts what it caches of the replaced data.
   * @returns the new generation
   */
  renew(tenantId: string, epoch: bigint): Promise<number>
  /**
   * Wakes a paused tenant.
   * @returns the new generation; undefined when it is not paused any more
   */
  wake(tenantId: string, epoch: bigint): Promise<number | undefined>
  /** Pauses the tenant, unless a request has changed it since that generation. */
  pauseAgain(tenantId: string, generation: number, epoch: bigint): Promise<void>
  /** Returns the tenants with a schedule. */
  scheduled(): Promise<ScheduledTenant[]>
  /** Records that the schedule was followed up to that time. */
  recordSeen(tenantId: string, schedule: string, at: Date, epoch: bigint): Promise<void>
  /** Opens the backup of a planned time, unless there is one already. */
  plan(tenantId: string, schedule: string, plannedAt: Date, epoch: bigint): Promise<void>
  /** Returns the states of all backups, by ID. */
  backupStates(): Promise<Map<string, Backup['state']>>
  /**
   * Returns the tenant's plan.
   * @throws OperationSuperseded when there is no such tenant
   */
  planOf(tenantId: string): Promise<{ plan: string }>
}
