// Makes one backup, of a running tenant or of a paused one that it wakes.
import { Pace } from '../platform/pace.ts'
import { type Snapshot, isDedicated } from '../reconcile/index.ts'
import type { Job } from './backup.ts'
import { BackupError, isTargetFailure } from './backup-error.ts'
import type { BackupTarget } from './backup-target.ts'
import type { BackupInProgress, Taken } from './complete-backup.ts'
import { ownLocation, presentTenant, sharedParts, stepOf, type JobDeps } from './job-deps.ts'
import { encryptedParts } from './manifest.ts'
import { openFiles } from './parts.ts'
import { takeShared } from './shared/take-shared.ts'
import { takeBackup } from './take-backup.ts'

const wakeMilliseconds = 120_000
const pollMilliseconds = 250

/**
 * Makes a backup. One that an interrupted attempt has committed is recorded as it is, and not made again. After an
 * error nothing uncommitted remains in the target.
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function runBackup(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { ledger, targets, epoch, log } = deps
  const taken = (await committed(job, deps, signal)) ?? (await takeOwn(job, deps, signal))
  for (const old of await ledger.completeBackup(job, taken, epoch)) {
    await targets
      .remove(old)
      .catch((cause: unknown) => log.warn({ backup: old, err: cause }, 'An old backup could not be removed.'))
  }
}

/** Returns the backup that an interrupted attempt has committed; undefined when there is none. */
export async function committed(
  { backup, key }: Job,
  { targets }: JobDeps,
  signal: AbortSignal,
): Promise<Taken | undefined> {
  const copy = await targets.committed(backup.id, encryptedParts)
  if (copy === undefined) return undefined
  return { bytes: copy.bytes, manifestHash: await openFiles(copy.target, backup.id, key, signal).manifestHash() }
}

async function takeOwn(job: Job, deps: JobDeps, signal: AbortSignal): Promise<Taken> {
  return awake(job, deps, signal, (tenant) =>
    makeBackup(job, tenant, deps, signal, async (options) =>
      isDedicated(tenant)
        ? takeBackup({ ...options, location: await ownLocation(deps, tenant, signal) }, signal)
        : takeShared({ ...options, ...sharedParts(deps, tenant) }, signal),
    ),
  )
}

type Make = (options: BackupInProgress) => Promise<Taken>

/** Makes the backup of a tenant with `make`, in the first target that can be written. */
export async function makeBackup(
  job: Job,
  tenant: Snapshot,
  deps: JobDeps,
  signal: AbortSignal,
  make: Make,
): Promise<Taken> {
  const { ledger, targets, log } = deps
  const { plan } = await ledger.planOf(tenant.id)
  const failures: BackupError[] = []
  for (const target of targets.each) {
    try {
      return await makeInto(target, job, { ...tenant, plan }, deps, signal, make)
    } catch (cause) {
      if (!isTargetFailure(cause)) throw cause
      log.warn({ backup: job.backup.id, target: target.name, err: cause }, 'A target could not store a backup.')
      failures.push(cause)
    }
  }
  const [cause] = failures
  throw new BackupError(cause?.code ?? 'FAILED', failures.map(({ message }) => message).join(' '), { cause })
}

async function makeInto(
  target: BackupTarget,
  job: Job,
  tenant: Snapshot & { plan: string },
  deps: JobDeps,
  signal: AbortSignal,
  make: Make,
): Promise<Taken> {
  const { backup, key } = job
  await target.discard(backup.id)
  try {
    const files = openFiles(target, backup.id, key, signal)
    const record = (taken: Taken) => recordOf(job, tenant, taken, deps)
    const { clock } = deps
    const pace = new Pace(deps.bytesPerSecond, clock, signal)
    return await make({ backupId: backup.id, tenant, files, clock, pace, record, step: stepOf(deps, job) })
  } catch (cause) {
    await target.discard(backup.id).catch((error: unknown) => {
      deps.log.warn({ backup: backup.id, err: error }, 'An incomplete backup could not be removed.')
    })
    throw cause
  }
}

function recordOf(
  { backup, key }: Job,
  tenant: Snapshot & { plan: string },
  taken: Taken,
  { records, clock }: JobDeps,
): string {
  const described = {
    backup_id: backup.id,
    tenant_id: tenant.id,
    tenant_name: tenant.name,
    plan: tenant.plan,
    isolation: tenant.isolation,
    region: backup.region,
    trigger: backup.trigger,
    planned_at: backup.plannedAt?.toISOString() ?? null,
    created_at: backup.createdAt.toISOString(),
    finished_at: clock.now().toISOString(),
    bytes: taken.bytes,
    manifest_sha256: taken.manifestHash,
  }
  return records.write(described, key)
}

/**
 * Calls `work` with the running tenant. For a scheduled backup, a paused tenant is woken and afterwards paused again,
 * unless a request has changed it meanwhile.
 * @throws BackupError NOT_RUNNING for any other tenant that is not ready
 */
async function awake<T>(
  { tenantId, backup }: Job,
  deps: JobDeps,
  signal: AbortSignal,
  work: (tenant: Snapshot) => Promise<T>,
): Promise<T> {
  const { ledger, epoch } = deps
  const tenant = await presentTenant(deps, tenantId)
  const woken =
    tenant.desired === 'paused' && backup.trigger === 'schedule' ? await ledger.wake(tenantId, epoch) : undefined
  try {
    return await work(woken === undefined ? running(tenant) : await untilReady(tenantId, woken, deps, signal))
  } finally {
    if (woken !== undefined) await ledger.pauseAgain(tenantId, woken, epoch)
  }
}

function running(tenant: Snapshot): Snapshot {
  if (tenant.desired !== 'active' || tenant.status !== 'ready')
    throw new BackupError('NOT_RUNNING', `The tenant is ${tenant.status}. Only a ready tenant can be backed up.`)
  return tenant
}

async function untilReady(tenantId: string, generation: number, deps: JobDeps, signal: AbortSignal): Promise<Snapshot> {
  for (let waited = 0; waited < wakeMilliseconds; waited += pollMilliseconds) {
    const tenant = await presentTenant(deps, tenantId)
    if (tenant.status === 'ready' && tenant.observedGeneration >= generation) return tenant
    await deps.clock.sleep(pollMilliseconds, signal)
  }
  throw new BackupError('NOT_RUNNING', 'The paused tenant did not wake in time.')
}
